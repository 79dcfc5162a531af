"""When the changes of a plan are made: batches, the time they take, and the least it could be.

A batch is a set of changes that are started together; the next one starts once all of its copies
are in sync. Kafka copies from the leader, so the limits count what brokers send as leaders and what
they receive. Copies of a batch share the throttle of a broker, in each direction: a batch takes as
long as its busiest broker.
"""

from __future__ import annotations

from dataclasses import dataclass

from regent_rebalance.errors import InvalidInputError
from regent_rebalance.ragged import Ints


@dataclass(frozen=True, slots=True)
class Limits:
    """What one broker may have to do in one batch, in each direction.

    Attributes:
        copies: New replicas. Cruise Control's num.concurrent.partition.movements.per.broker.
        bytes: Bytes, None for any number. What a single change needs passes in any case.
        rate: The throttle in bytes a second, as kafka-reassign-partitions --throttle.
    """

    copies: int = 5
    bytes: int | None = None
    rate: int = 50_000_000

    def __post_init__(self) -> None:
        for what, value in (
            ("copies in a batch", self.copies),
            ("bytes in a batch", self.bytes),
            ("throttle", self.rate),
        ):
            if value is not None and value < 1:
                raise InvalidInputError(f"{what}: {value} for a broker: at least 1")


@dataclass(frozen=True, slots=True)
class Batch:
    """Changes that are started together.

    Attributes:
        partitions: How many change.
        copies: New replicas.
        bytes: What they copy.
        busiest: Id of the broker that sends or receives most; -1 if nothing is copied.
        load: The bytes that it sends or receives, whichever is more.
        urgency: Of the most urgent change, a name of ``moves.URGENCIES``.
    """

    partitions: int
    copies: int
    bytes: int
    busiest: int
    load: int
    urgency: str


@dataclass(frozen=True, slots=True)
class Schedule:
    """Batches in order.

    Attributes:
        batch: For each change of the plan its batch, 0 the first.
        least_load: Bytes that some broker sends or receives in all. No order takes less time.
        least_batches: No batches within the limits are fewer.
        notes: What goes wrong while the plan is carried out: disks that overflow, partitions that
            nobody can copy.
        short_of_room: Ids of brokers whose disks have not room for all new replicas at once.
    """

    limits: Limits
    batch: Ints
    batches: tuple[Batch, ...]
    least_load: int
    least_batches: int
    notes: tuple[str, ...] = ()
    short_of_room: tuple[int, ...] = ()

    @property
    def seconds(self) -> float:
        """Predicted makespan: of all batches, one after another."""
        return sum(batch.load for batch in self.batches) / self.limits.rate

    @property
    def least_seconds(self) -> float:
        """Lower bound on the makespan of any order, with or without batches."""
        return self.least_load / self.limits.rate

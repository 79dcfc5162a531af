"""What passes between the stub brokers' process and the benchmark's."""

from dataclasses import dataclass
from typing import NamedTuple


class Exchange(NamedTuple):
    """One control request and its answer, as a stub broker saw them.

    Times are nanoseconds of the machine's monotonic clock.

    Attributes:
        frame: The request without its length.
        began_at: The first bytes of the request were read.
        received_at: It was there completely.
        answered_at: The last byte of the answer was handed to the kernel.
    """

    broker_id: int
    api_key: int
    version: int
    frame: bytearray
    began_at: int
    received_at: int
    answered_at: int


@dataclass(frozen=True, slots=True)
class StubStatus:
    """What the stub brokers have seen since they were last told to forget.

    Attributes:
        busy: Requests that are not complete, or not answered completely.
        last_activity_at: Monotonic nanoseconds of the last byte read or written.
        leader_and_isr_partitions: By broker, entries over all LeaderAndIsr requests.
        stopped_partitions: By broker, entries over all StopReplica requests.
        update_metadata_bytes: By broker, the size of all UpdateMetadata requests.
        cpu_seconds: Processor time of the stub process since it was started.
        refused: Requests for which a connection had to be closed.
    """

    busy: int
    last_activity_at: int
    leader_and_isr_partitions: dict[int, int]
    stopped_partitions: dict[int, int]
    update_metadata_bytes: dict[int, int]
    cpu_seconds: float
    refused: tuple[str, ...]

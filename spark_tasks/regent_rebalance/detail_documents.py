"""Details of a plan as its file has them."""

from __future__ import annotations

import msgspec

from regent_rebalance.details import BrokerLoad, Details
from regent_rebalance.errors import InvalidInputError
from regent_rebalance.ragged import Ints, ints
from regent_rebalance.schedule import Batch, Limits, Schedule


class ScheduleDocument(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    """Batches. ``seconds`` and ``least_seconds`` are for people: they follow from the rest."""

    copies_per_broker: int
    bytes_per_broker: int | None
    bytes_per_second: int
    seconds: float
    least_seconds: float
    least_load: int
    least_batches: int
    notes: list[str]
    batches: list[Batch]
    short_of_room: list[int] | msgspec.UnsetType = msgspec.UNSET


class DetailsDocument(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    """What a plan does to each broker, and when."""

    assumptions: list[str]
    replica_limits: tuple[int, int] | None
    leader_limits: tuple[int, int] | None
    brokers: list[BrokerLoad]
    schedule: ScheduleDocument
    notes: list[str] | msgspec.UnsetType = msgspec.UNSET


def details_document(details: Details) -> DetailsDocument:
    """The document of details."""
    schedule = details.schedule
    return DetailsDocument(
        assumptions=list(details.assumptions),
        replica_limits=details.replica_limits,
        leader_limits=details.leader_limits,
        brokers=list(details.brokers),
        schedule=ScheduleDocument(
            copies_per_broker=schedule.limits.copies,
            bytes_per_broker=schedule.limits.bytes,
            bytes_per_second=schedule.limits.rate,
            seconds=round(schedule.seconds, 3),
            least_seconds=round(schedule.least_seconds, 3),
            least_load=schedule.least_load,
            least_batches=schedule.least_batches,
            notes=list(schedule.notes),
            batches=list(schedule.batches),
            short_of_room=list(schedule.short_of_room) or msgspec.UNSET,
        ),
        notes=list(details.notes) or msgspec.UNSET,
    )


def details_from(document: DetailsDocument, numbers: Ints, *, source: str) -> Details:
    """The details of a document.

    Args:
        numbers: For each change the number of its batch, 1 the first.

    Raises:
        InvalidInputError: Changes in other batches than the document has.
    """
    found = document.schedule
    partitions = [batch.partitions for batch in found.batches]
    counts = [int((numbers == number).sum()) for number in range(1, len(partitions) + 1)]
    if counts != partitions or len(numbers) != sum(partitions):
        raise InvalidInputError(
            f"{source}: its changes are in other batches than its schedule says: the file was "
            "edited after it was planned; plan again"
        )
    schedule = Schedule(
        limits=Limits(
            copies=found.copies_per_broker,
            bytes=found.bytes_per_broker,
            rate=found.bytes_per_second,
        ),
        batch=ints(numbers) - 1,
        batches=tuple(found.batches),
        least_load=found.least_load,
        least_batches=found.least_batches,
        notes=tuple(found.notes),
        short_of_room=(
            () if isinstance(found.short_of_room, msgspec.UnsetType) else tuple(found.short_of_room)
        ),
    )
    return Details(
        assumptions=tuple(document.assumptions),
        replica_limits=document.replica_limits,
        leader_limits=document.leader_limits,
        brokers=tuple(document.brokers),
        schedule=schedule,
        notes=() if isinstance(document.notes, msgspec.UnsetType) else tuple(document.notes),
    )

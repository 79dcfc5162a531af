"""How many bytes of a plan are copied, how fast, and which copies do not grow.

A copy has as many bytes as its broker says; one that is in sync has all of them, and one that was
not begun has none. All of them are as many as the leader has, at that moment: producers add some,
retention and compaction remove some. So the figures are estimates. Nothing of them is stored: after
a restart the bytes are there again with the first answers of the brokers, the rate with the second.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from regent.controller.view import ClusterView, PartitionView
from regent.model.partition import TopicPartition
from regent.reconcile.reassignments.move_plan import Move, MovePlan
from regent.reconcile.reassignments.stages import find_partition
from regent.resources.conditions import enumerate_some

STALLED_AFTER_S: Final = 300.0
"""A copy that has not grown for so long is named."""

_WINDOW_S: Final = 60.0
"""Over how long the rate is taken."""

_NAMED: Final = 3


class Copy(NamedTuple):
    """A replica that a broker gets."""

    tp: TopicPartition
    broker_id: int


@dataclass(frozen=True, slots=True)
class SeenPartition:
    """A partition when the brokers were asked.

    Attributes:
        total: Bytes that its leader has; None: it is not known.
        sizes: Bytes of the copies that were not in sync, by broker, as far as they are known.
    """

    total: int | None
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    sizes: Mapping[int, int]


class Received(NamedTuple):
    """Bytes that copies have got between two answers.

    Attributes:
        since: Monotonic seconds of the one, ``until`` those of the other.
    """

    since: float
    until: float
    bytes: Mapping[Copy, int]


@dataclass(frozen=True, slots=True)
class CopyLedger:
    """What is known of copies.

    Attributes:
        at: Monotonic seconds at which the brokers were asked last, ``time`` the same moment,
            aware; None: never.
        silent: Why brokers did not say anything, by broker.
        grown_at: Monotonic seconds at which copies under way were last seen to have grown, or were
            first seen.
        received: The last ones, the newest at the end.
    """

    at: float = 0.0
    time: datetime | None = None
    partitions: Mapping[TopicPartition, SeenPartition] = field(default_factory=dict)
    silent: Mapping[int, str] = field(default_factory=dict)
    grown_at: Mapping[Copy, float] = field(default_factory=dict)
    received: tuple[Received, ...] = ()


@dataclass(frozen=True, slots=True)
class CopyFigures:
    """How far the copies of a plan are.

    Attributes:
        bytes_per_second: In the last minute; None: not known yet, or nothing is copied just now.
        estimated_end: Aware; None: not known, or nothing is copied just now.
    """

    bytes_total: int
    bytes_copied: int
    bytes_per_second: int | None = None
    estimated_end: datetime | None = None


@dataclass(frozen=True, slots=True)
class UnknownFigures:
    """There are none, and why; the text is empty as long as nobody was asked."""

    reason: str = ""


def questions(plans: Iterable[MovePlan], view: ClusterView) -> dict[int, frozenset[TopicPartition]]:
    """Of which partitions which broker has to say how much it has: leaders, and those that get a
    copy. One request each answers for all plans."""
    asked: dict[int, set[TopicPartition]] = {}
    for tp, partition in _partitions(plans, view):
        if partition.has_leader:
            asked.setdefault(partition.leader, set()).add(tp)
        for broker_id in _under_way(partition):
            asked.setdefault(broker_id, set()).add(tp)
    return {broker_id: frozenset(asked[broker_id]) for broker_id in sorted(asked)}


def observe(
    ledger: CopyLedger,
    plans: Iterable[MovePlan],
    view: ClusterView,
    *,
    answers: Mapping[int, Mapping[TopicPartition, int]],
    silent: Mapping[int, str],
    at: float,
    time: datetime,
) -> CopyLedger:
    """The ledger with what the brokers have answered to :func:`questions`.

    Args:
        view: The one that the questions were made from.
        answers: Bytes by broker and partition. What a broker does not name it does not have.
        silent: Why others have not answered.
        at: Monotonic seconds, ``time`` the same moment.
    """
    partitions = {tp: _seen(tp, partition, answers) for tp, partition in _partitions(plans, view)}
    grown_at = {
        Copy(tp, broker_id): _grown_at(ledger, Copy(tp, broker_id), size, at)
        for tp, seen in partitions.items()
        for broker_id, size in seen.sizes.items()
    }
    received = tuple(each for each in ledger.received if each.since >= at - _WINDOW_S)
    if ledger.time is not None and at - ledger.at <= _WINDOW_S:
        newest = Received(ledger.at, at, dict(_received(ledger.partitions, partitions)))
        received = (*received, newest)
    return CopyLedger(at, time, partitions, dict(silent), grown_at, received)


def figures(plan: MovePlan, view: ClusterView, ledger: CopyLedger) -> CopyFigures | UnknownFigures:
    """How far the copies of a plan are, by what is known."""
    total = copied = 0
    unknown: list[str] = []
    copies: set[Copy] = set()
    is_copied = False
    for move in plan.moves:
        partition = _present(move, view)
        if partition is None or not move.adding:
            continue
        is_copied = is_copied or bool(_under_way(partition))
        seen = ledger.partitions.get(move.tp)
        if seen is None:
            return UnknownFigures()
        if seen.total is None:
            unknown.append(_why_no_total(move.tp, partition, ledger))
            continue
        for broker_id in move.adding:
            size = _copied(broker_id, partition, seen, ledger)
            if size is None:
                unknown.append(_why_no_size(broker_id, ledger))
                continue
            copies.add(Copy(move.tp, broker_id))
            total += seen.total
            copied += min(size, seen.total)
    if unknown:
        return UnknownFigures(enumerate_some(list(dict.fromkeys(unknown)), limit=_NAMED))
    # Brokers are asked while something is copied: what they said last is no rate of now otherwise.
    rate = _rate(copies, ledger) if is_copied and copied < total else None
    return CopyFigures(total, copied, rate, _end(ledger, rate, total - copied))


def stalled_for_s(copy: Copy, ledger: CopyLedger) -> float | None:
    """For how long a copy has not grown, if that is too long; None: it has, or nobody knows."""
    grown_at = ledger.grown_at.get(copy)
    if grown_at is None or ledger.at - grown_at < STALLED_AFTER_S:
        return None
    return ledger.at - grown_at


def _partitions(
    plans: Iterable[MovePlan], view: ClusterView
) -> Iterator[tuple[TopicPartition, PartitionView]]:
    """The partitions of plans that copy something, each once."""
    seen: set[TopicPartition] = set()
    for plan in plans:
        for move in plan.moves:
            partition = None if move.tp in seen else _present(move, view)
            if partition is not None and frozenset(move.replicas) != frozenset(move.target):
                seen.add(move.tp)
                yield move.tp, partition


def _present(move: Move, view: ClusterView) -> PartitionView | None:
    """The partition of a move, unless it is gone or another one of that name."""
    topic = view.topics.get(move.topic)
    if topic is None or topic.is_being_deleted:
        return None
    if move.czxid and topic.czxid and move.czxid != topic.czxid:
        return None
    return find_partition(topic, move.partition)


def _under_way(partition: PartitionView) -> tuple[int, ...]:
    """Brokers whose copy is not in sync yet."""
    return tuple(b for b in partition.adding_replicas if b not in partition.isr)


def _seen(
    tp: TopicPartition,
    partition: PartitionView,
    answers: Mapping[int, Mapping[TopicPartition, int]],
) -> SeenPartition:
    return SeenPartition(
        total=answers[partition.leader].get(tp) if partition.leader in answers else None,
        replicas=partition.replicas,
        isr=partition.isr,
        sizes={b: answers[b].get(tp, 0) for b in _under_way(partition) if b in answers},
    )


def _grown_at(ledger: CopyLedger, copy: Copy, size: int, at: float) -> float:
    before = ledger.partitions.get(copy.tp)
    known = None if before is None else before.sizes.get(copy.broker_id)
    has_grown = known is None or size > known
    return at if has_grown else ledger.grown_at.get(copy, at)


def _received(
    before: Mapping[TopicPartition, SeenPartition], now: Mapping[TopicPartition, SeenPartition]
) -> Iterator[tuple[Copy, int]]:
    """What copies have got. Those that began and arrived in between have got everything."""
    for tp, seen in now.items():
        then = before.get(tp)
        if then is None:
            continue
        for broker_id in seen.replicas:
            if broker_id in then.isr:
                continue
            had = then.sizes.get(broker_id) if broker_id in then.replicas else 0
            has = seen.total if broker_id in seen.isr else seen.sizes.get(broker_id)
            if had is not None and has is not None and has > had:
                yield Copy(tp, broker_id), has - had


def _copied(
    broker_id: int, partition: PartitionView, seen: SeenPartition, ledger: CopyLedger
) -> int | None:
    """Bytes of a copy; None: they are not known."""
    if broker_id in partition.isr:
        return seen.total
    if broker_id not in partition.replicas:
        return 0
    if broker_id in ledger.silent:
        return None
    return seen.sizes.get(broker_id, 0)


def _why_no_total(tp: TopicPartition, partition: PartitionView, ledger: CopyLedger) -> str:
    if not partition.has_leader:
        return f"{tp} has no leader that could say how large it is"
    if partition.leader in ledger.silent:
        return _why_no_size(partition.leader, ledger)
    return f"broker {partition.leader} leads {tp}, and names no log of it"


def _why_no_size(broker_id: int, ledger: CopyLedger) -> str:
    return f"broker {broker_id} does not say: {ledger.silent[broker_id]}"


def _rate(copies: Collection[Copy], ledger: CopyLedger) -> int | None:
    """Bytes a second of these copies."""
    if not ledger.received:
        return None
    elapsed_s = ledger.received[-1].until - ledger.received[0].since
    got = sum(
        size for each in ledger.received for copy, size in each.bytes.items() if copy in copies
    )
    return int(got / elapsed_s) if elapsed_s > 0 else None


def _end(ledger: CopyLedger, rate: int | None, left: int) -> datetime | None:
    if ledger.time is None or not rate or left <= 0:
        return None
    try:
        return ledger.time + timedelta(seconds=left / rate)
    except OverflowError:
        return None  # of no use to anybody

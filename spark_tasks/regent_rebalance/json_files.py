"""Snapshots and plans as JSON. Both are files that kafka-reassign-partitions reads.

The tool looks at "version" and "partitions" alone, and in a partition at "topic", "partition" and
"replicas"; everything else is ours.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from typing import Annotated, Any, TypeVar

import msgspec
import numpy as np

from regent_rebalance.bounds import Bounds
from regent_rebalance.detail_documents import DetailsDocument, details_document, details_from
from regent_rebalance.errors import InvalidInputError
from regent_rebalance.plan import (
    Changes,
    GoalResult,
    Objective,
    Plan,
    Spread,
    Summary,
    changes_of,
    hash_of,
)
from regent_rebalance.ragged import Ints, ints, offsets_of
from regent_rebalance.snapshot import (
    AMOUNT_MAX,
    UNKNOWN,
    Brokers,
    LogDir,
    Rows,
    Snapshot,
    snapshot_of,
)

VERSION = 1

_T = TypeVar("_T")

Id = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]
"""Of a broker or a partition."""

Amount = Annotated[int, msgspec.Meta(ge=-AMOUNT_MAX, le=AMOUNT_MAX)]
"""Bytes, or bytes a second."""


class LogDirDocument(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    """A log directory of a broker that has several."""

    path: str
    bytes: Amount
    used_bytes: Amount
    replicas: Amount


class BrokerDocument(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    """A broker of a snapshot. A broker without a rack is in the rack ""."""

    id: Id
    rack: str | None = None
    alive: bool = True
    disk_bytes: Amount | None = None
    network_in_bytes: Amount | msgspec.UnsetType | None = msgspec.UNSET
    network_out_bytes: Amount | msgspec.UnsetType | None = msgspec.UNSET
    log_dirs: list[LogDirDocument] | msgspec.UnsetType | None = msgspec.UNSET


class PartitionDocument(msgspec.Struct, rename="camel", omit_defaults=True):
    """A partition of a snapshot. ``leader`` is an id, -1 for none; left out: the first replica.

    ``bytes_in`` and ``bytes_out`` are bytes a second, -1 for an unknown rate.
    """

    topic: str
    partition: Id
    replicas: list[Id]
    leader: Id | None = None
    sizes: list[Amount] | None = None
    bytes_in: Amount = UNKNOWN
    bytes_out: Amount = UNKNOWN


class SnapshotDocument(msgspec.Struct):
    """A snapshot."""

    version: int
    brokers: list[BrokerDocument]
    partitions: list[PartitionDocument]
    notes: list[str] = []


class ChangeDocument(msgspec.Struct, omit_defaults=True):
    """A partition of a plan: its replicas before, what they will be, and in which batch."""

    topic: str
    partition: Id
    replicas: list[Id]
    previous: list[Id]
    bytes: Amount
    batch: Id = 0


class BoundsDocument(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    """Lower bounds of a plan."""

    mandatory: int
    fractional: int
    dual: int
    mandatory_bytes: int
    cover_bytes: int
    dual_bytes: int = 0


class SummaryDocument(
    msgspec.Struct, rename="camel", forbid_unknown_fields=True, omit_defaults=True
):
    """What is said about a plan."""

    hash: str
    moves: int
    removals: int
    bytes: int
    leader_changes: int
    leader_changes_bound: int
    bounds: BoundsDocument
    gap: float
    method: str
    goals: list[GoalResult]
    before: list[Spread]
    after: list[Spread]
    objective: Objective | None = None
    details: DetailsDocument | None = None


class PlanDocument(msgspec.Struct):
    """A plan."""

    version: int
    partitions: list[ChangeDocument]
    plan: SummaryDocument


def decode_snapshot(content: bytes, *, source: str) -> Snapshot:
    """Raises InvalidInputError for what is no snapshot; ``source`` is its name in the message."""
    document = _decode(content, SnapshotDocument, "snapshot", source)
    _check_version(document.version, source)
    partitions = document.partitions
    for p in partitions:
        if p.sizes is not None and len(p.sizes) != len(p.replicas):
            raise InvalidInputError(
                f"{p.topic}-{p.partition}: {len(p.sizes)} sizes for {len(p.replicas)} replicas: "
                f"give one for each, {UNKNOWN} for an unknown one"
            )
    sizes = [size for p in partitions for size in (p.sizes or [UNKNOWN] * len(p.replicas))]
    snapshot = snapshot_of(
        brokers_of(document.brokers),
        Rows(
            topic=[p.topic for p in partitions],
            partition=[p.partition for p in partitions],
            lengths=[len(p.replicas) for p in partitions],
            replicas=[broker for p in partitions for broker in p.replicas],
            leader=[_leader(p) for p in partitions],
            sizes=sizes,
            bytes_in=[p.bytes_in for p in partitions],
            bytes_out=[p.bytes_out for p in partitions],
        ),
    )
    return dataclasses.replace(snapshot, notes=tuple(document.notes))


def _leader(partition: PartitionDocument) -> int:
    if partition.leader is None:
        return partition.replicas[0] if partition.replicas else UNKNOWN
    return partition.leader


def brokers_of(documents: Sequence[BrokerDocument]) -> Brokers:
    """Checked brokers."""
    for broker in documents:
        for name, value in (
            ("diskBytes", broker.disk_bytes),
            ("networkInBytes", broker.network_in_bytes),
            ("networkOutBytes", broker.network_out_bytes),
        ):
            if isinstance(value, int) and value < 0:
                raise InvalidInputError(
                    f"broker {broker.id}: {name} {value} is negative: give its capacity, or leave "
                    "it out"
                )

    def capacities(values: Iterable[int | msgspec.UnsetType | None]) -> list[int]:
        return [value if isinstance(value, int) else UNKNOWN for value in values]

    return Brokers.of(
        [broker.id for broker in documents],
        [broker.rack for broker in documents],
        alive=[broker.alive for broker in documents],
        disk_bytes=capacities(broker.disk_bytes for broker in documents),
        network_in=capacities(broker.network_in_bytes for broker in documents),
        network_out=capacities(broker.network_out_bytes for broker in documents),
        log_dirs=[
            tuple(LogDir(**msgspec.structs.asdict(each)) for each in broker.log_dirs or ())
            for broker in documents
        ],
    )


def broker_documents(brokers: Brokers) -> list[BrokerDocument]:
    """Brokers as a snapshot file has them."""
    return [
        BrokerDocument(
            id=identity,
            rack=brokers.rack_names[rack] or None,
            alive=alive,
            disk_bytes=_known(disk),
            network_in_bytes=msgspec.UNSET if network_in == UNKNOWN else network_in,
            network_out_bytes=msgspec.UNSET if network_out == UNKNOWN else network_out,
            log_dirs=[LogDirDocument(**dataclasses.asdict(each)) for each in log_dirs]
            or msgspec.UNSET,
        )
        for identity, rack, alive, disk, network_in, network_out, log_dirs in zip(
            brokers.ids.tolist(),
            brokers.racks.tolist(),
            brokers.alive.tolist(),
            brokers.disk_bytes.tolist(),
            brokers.network_in.tolist(),
            brokers.network_out.tolist(),
            brokers.log_dirs,
            strict=True,
        )
    ]


def _known(capacity: int) -> int | None:
    return None if capacity == UNKNOWN else capacity


def encode_snapshot(snapshot: Snapshot) -> bytes:
    """The same bytes for the same snapshot."""
    ids, ends = snapshot.brokers.ids, snapshot.offsets.tolist()
    replicas, sizes = ids[snapshot.replicas].tolist(), snapshot.sizes.tolist()
    leaders = np.where(snapshot.leader == UNKNOWN, UNKNOWN, ids[snapshot.leaders()]).tolist()
    partitions = [
        PartitionDocument(
            snapshot.topics[topic],
            number,
            replicas[begin:end],
            leader,
            sizes[begin:end],
            bytes_in,
            bytes_out,
        )
        for topic, number, begin, end, leader, bytes_in, bytes_out in zip(
            snapshot.topic.tolist(),
            snapshot.partition.tolist(),
            ends[:-1],
            ends[1:],
            leaders,
            snapshot.bytes_in.tolist(),
            snapshot.bytes_out.tolist(),
            strict=True,
        )
    ]
    head: dict[str, Any] = {"version": VERSION, "brokers": broker_documents(snapshot.brokers)}
    if snapshot.notes:
        head["notes"] = snapshot.notes
    return _lines(head, partitions)


def encode_plan(plan: Plan) -> bytes:
    """The same bytes for the same plan."""
    before, after = plan.changes.lists()
    changes = [
        ChangeDocument(*row)
        for row in zip(
            plan.changes.topic,
            plan.changes.partition.tolist(),
            after,
            before,
            plan.changes.bytes.tolist(),
            plan.batch_numbers().tolist(),
            strict=True,
        )
    ]
    return _lines({"version": VERSION, "plan": summary_document(plan)}, changes)


def encode_batches(plan: Plan) -> list[bytes]:
    """The changes of each batch: what kafka-reassign-partitions needs, and no more."""
    rows: list[list[dict[str, Any]]] = [[] for _ in range(int(plan.batch_numbers().max(initial=0)))]
    columns = (plan.changes.topic, plan.changes.partition.tolist(), plan.changes.lists()[1])
    for number, topic, partition, after in zip(
        plan.batch_numbers().tolist(), *columns, strict=True
    ):
        rows[number - 1].append({"topic": topic, "partition": partition, "replicas": after})
    return [_lines({"version": VERSION}, batch) for batch in rows]


def summary_document(plan: Plan) -> SummaryDocument:
    """What a plan file says about the plan."""
    s = plan.summary
    return SummaryDocument(
        hash=plan.hash,
        moves=s.moves,
        removals=s.removals,
        bytes=s.bytes,
        leader_changes=s.leader_changes,
        leader_changes_bound=s.leader_changes_bound,
        bounds=BoundsDocument(**dataclasses.asdict(s.bounds)),
        gap=round(s.gap, 6),
        method=s.method,
        goals=list(s.goals),
        before=list(s.before),
        after=list(s.after),
        objective=s.objective,
        details=None if plan.details is None else details_document(plan.details),
    )


def decode_plan(content: bytes, *, source: str) -> Plan:
    """Raises InvalidInputError for what is no plan, or is not the one that its hash names."""
    document = _decode(content, PlanDocument, "plan", source)
    _check_version(document.version, source)
    rows = document.partitions
    changes = changes_of(
        tuple(row.topic for row in rows),
        ints([row.partition for row in rows]),
        _columns([row.previous for row in rows]),
        _columns([row.replicas for row in rows]),
        ints([row.bytes for row in rows]),
    )
    numbers = ints([row.batch for row in rows])
    return plan_from(changes, numbers, document.plan, source=source)


def plan_from(changes: Changes, numbers: Ints, document: SummaryDocument, *, source: str) -> Plan:
    """A plan whose changes are those of its hash, else InvalidInputError.

    Args:
        numbers: For each change the number of its batch, 0 without batches.
    """
    found = hash_of(changes)
    if found != document.hash:
        raise InvalidInputError(
            f"{source}: its changes have the hash {found}, and it says {document.hash}: the file "
            "was edited after it was planned; plan again"
        )
    summary = Summary(
        moves=document.moves,
        removals=document.removals,
        bytes=document.bytes,
        leader_changes=document.leader_changes,
        leader_changes_bound=document.leader_changes_bound,
        bounds=Bounds(**msgspec.structs.asdict(document.bounds)),
        method=document.method,
        goals=tuple(document.goals),
        before=tuple(document.before),
        after=tuple(document.after),
        objective=document.objective,
    )
    details = document.details
    return Plan(
        changes,
        summary,
        document.hash,
        None if details is None else details_from(details, numbers, source=source),
    )


def _columns(lists: Sequence[Sequence[int]]) -> tuple[Ints, Ints]:
    return (
        offsets_of(ints([len(values) for values in lists])),
        ints([value for values in lists for value in values]),
    )


def _decode(content: bytes, kind: type[_T], what: str, source: str) -> _T:
    try:
        return msgspec.json.decode(content, type=kind)
    except msgspec.ValidationError as error:
        raise InvalidInputError(
            f"{source} is no {what}: {error}: docs/planner.md has the format"
        ) from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidInputError(
            f"{source} is no JSON: {error}: give a {what} in JSON, or in Parquet as *.parquet"
        ) from error


def _check_version(version: int, source: str) -> None:
    if version != VERSION:
        raise InvalidInputError(
            f"{source} has version {version}: this planner reads version {VERSION}"
        )


def _lines(head: dict[str, Any], partitions: Sequence[Any]) -> bytes:
    """A line for each partition: people compare such files."""
    encoder = msgspec.json.Encoder()
    opening = encoder.encode(head)[:-1]
    rows = encoder.encode_lines(partitions).rstrip(b"\n").replace(b"\n", b",\n")
    return opening + b',"partitions":[\n' + rows + b"\n]}\n"

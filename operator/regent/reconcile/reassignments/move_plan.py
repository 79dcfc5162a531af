"""The plan of a reassignment: which partitions get which replicas, as one value with a hash.

The plan is stored as a document in the status of its resource. What is executed is read from there:
the same hash means the same moves, whatever becomes of this process or of the cluster meanwhile.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import zlib
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated, Final, NamedTuple

import msgspec

from regent.model.partition import TopicPartition
from regent.model.topic import topic_name_problem

_VERSION: Final = 1
_JSON_LENGTH_MAX: Final = 16 * 1024 * 1024
"""Of a document when it is decompressed."""

_SIZE_OF_A_PLAN: Final = 10
"""What a plan without moves takes in memory, in moves."""

_KEPT_SIZE_MAX: Final = 300_000
"""Moves of all plans that are kept after they were read: some 140 MB at most."""


class PlanDocumentError(ValueError):
    """A stored document is none that this Regent has written."""


class Move(NamedTuple):
    """What becomes of one partition.

    Attributes:
        czxid: Transaction that created the node of its topic, 0 if not known. A topic of that name
            with another one is another topic.
        replicas: Where it is, the preferred leader first.
        target: Where it shall be.
    """

    topic: str
    partition: int
    czxid: int
    replicas: tuple[int, ...]
    target: tuple[int, ...]

    @property
    def tp(self) -> TopicPartition:
        return TopicPartition(self.topic, self.partition)

    @property
    def adding(self) -> tuple[int, ...]:
        """Brokers that get a copy."""
        return tuple(broker for broker in self.target if broker not in self.replicas)

    @property
    def leaving(self) -> tuple[int, ...]:
        """Brokers that have a copy, and shall have none."""
        return tuple(broker for broker in self.replicas if broker not in self.target)


@dataclass(frozen=True)
class RoomOrder:
    """What waits for room on disks: a copy to one of these brokers begins once all that leaves the
    broker in earlier batches has left it.

    Attributes:
        brokers: Those that have not room for all copies at once. No other one is waited for.
        batches: For each move of the plan the batch of it.
    """

    brokers: frozenset[int]
    batches: tuple[int, ...]


@dataclass(frozen=True)
class MovePlan:
    """Moves in the order of topics and partitions.

    Attributes:
        cluster_id: Id of the Kafka cluster that it is for.
        room: What waits for room on disks; None: nothing does. It is no part of the hash: the same
            moves are the same plan, in whatever order they are made.
    """

    cluster_id: str | None
    moves: tuple[Move, ...]
    room: RoomOrder | None = None

    @staticmethod
    def of(cluster_id: str | None, moves: Iterable[Move]) -> MovePlan:
        """The plan with these moves, in whatever order they come."""
        return MovePlan(cluster_id, tuple(sorted(moves)))

    def in_batches(self, brokers: Iterable[int], batches: Mapping[TopicPartition, int]) -> MovePlan:
        """The same moves, those to brokers that are short of room in the order of batches.

        Only what has to wait for something is kept of it.
        """
        order = tuple(batches.get(move.tp, 0) for move in self.moves)
        first_left: dict[int, int] = {}
        last_come: dict[int, int] = {}
        for move, batch in zip(self.moves, order, strict=True):
            for broker in move.leaving:
                first_left[broker] = min(batch, first_left.get(broker, batch))
            for broker in move.adding:
                last_come[broker] = max(batch, last_come.get(broker, batch))
        short = frozenset(b for b in brokers if first_left.get(b, 0) < last_come.get(b, 0))
        short &= first_left.keys()
        kept = tuple(
            batch if short.intersection((*move.adding, *move.leaving)) else 0
            for move, batch in zip(self.moves, order, strict=True)
        )
        return replace(self, room=RoomOrder(short, kept) if short else None)

    @cached_property
    def _text(self) -> bytes:
        """The canonical form: equal moves have equal bytes."""
        return _json(self._fields)

    @property
    def _fields(self) -> dict[str, object]:
        return {"version": _VERSION, "clusterId": self.cluster_id, "moves": self.moves}

    @cached_property
    def hash(self) -> str:
        """ "sha256:" and 64 digits."""
        return f"sha256:{hashlib.sha256(self._text).hexdigest()}"

    @cached_property
    def document(self) -> str:
        """As text that can be stored. Before there was an order, Regent passed it over."""
        text = self._text
        if self.room is not None:
            room = {"brokers": sorted(self.room.brokers), "batches": self.room.batches}
            text = _json({**self._fields, "room": room})
        return base64.b64encode(zlib.compress(text, level=9)).decode("ascii")

    @cached_property
    def topics(self) -> tuple[str, ...]:
        """Names of the topics, each once, sorted."""
        return tuple(dict.fromkeys(move.topic for move in self.moves))

    @cached_property
    def partitions(self) -> frozenset[TopicPartition]:
        """What is moved."""
        return frozenset(move.tp for move in self.moves)

    @property
    def replica_moves(self) -> int:
        """Replicas that are copied."""
        return sum(len(move.adding) for move in self.moves)

    @property
    def leader_changes(self) -> int:
        """Partitions that get another preferred leader."""
        return sum(move.replicas[:1] != move.target[:1] for move in self.moves)


def _json(document: Mapping[str, object]) -> bytes:
    return json.dumps(document, separators=(",", ":"), sort_keys=True).encode()


class _ReadPlans:
    """The plans that were read last, by document and expected hash.

    Bounded by what they are in memory, not by how many there are: a look at one reassignment reads
    the plans of all others that are under way, and of plans that are read in turn a cache with room
    for one less than there are finds none.
    """

    def __init__(self) -> None:
        self._plans: OrderedDict[tuple[str, str], MovePlan] = OrderedDict()
        self._size = 0

    def get(self, document: str, expected_hash: str) -> MovePlan | None:
        plan = self._plans.get((document, expected_hash))
        if plan is not None:
            self._plans.move_to_end((document, expected_hash))
        return plan

    def put(self, document: str, expected_hash: str, plan: MovePlan) -> None:
        self._plans[document, expected_hash] = plan
        self._size += _size(plan)
        while self._size > _KEPT_SIZE_MAX and len(self._plans) > 1:
            _, dropped = self._plans.popitem(last=False)
            self._size -= _size(dropped)


def _size(plan: MovePlan) -> int:
    return len(plan.moves) + _SIZE_OF_A_PLAN


_read_plans = _ReadPlans()


def read_plan(document: str, *, expected_hash: str) -> MovePlan:
    """The plan of a stored document. It is read often: whenever something of it has moved.

    Raises:
        PlanDocumentError: If it is malformed, or has another hash.
    """
    plan = _read_plans.get(document, expected_hash)
    if plan is None:
        plan = _read(document, expected_hash)
        _read_plans.put(document, expected_hash, plan)
    return plan


def _read(document: str, expected_hash: str) -> MovePlan:
    try:
        inflater = zlib.decompressobj()
        text = inflater.decompress(base64.b64decode(document, validate=True), _JSON_LENGTH_MAX)
        plan = _plan_of(text)
    except (binascii.Error, zlib.error, ValueError, RecursionError) as error:
        raise PlanDocumentError(f"the plan document cannot be read: {error}") from error
    if plan.hash != expected_hash:
        raise PlanDocumentError(
            f"the plan document has the hash {plan.hash}, not {expected_hash} as status.plan says"
        )
    return plan


_Number = Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]


class _Room(msgspec.Struct):
    brokers: frozenset[_Number]
    batches: tuple[_Number, ...]


class _Document(msgspec.Struct):
    """A document as it is stored. Whoever may edit a status may have made it."""

    version: int
    moves: tuple[
        tuple[
            str,
            _Number,
            Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)],
            tuple[_Number, ...],
            Annotated[tuple[_Number, ...], msgspec.Meta(min_length=1)],
        ],
        ...,
    ]
    cluster_id: str | None = msgspec.field(name="clusterId")
    room: _Room | None = None


_decode = msgspec.json.Decoder(_Document).decode


def _plan_of(text: bytes) -> MovePlan:
    document = _decode(text)
    if document.version != _VERSION:
        raise ValueError(f"version {document.version} is not known")
    moves = tuple(Move(*move) for move in document.moves)
    for topic in dict.fromkeys(move.topic for move in moves):
        problem = topic_name_problem(topic)
        if problem is not None:
            raise ValueError(problem)
    seen: set[TopicPartition] = set()
    for move in moves:
        for replicas in (move.replicas, move.target):
            if len(set(replicas)) != len(replicas):
                raise ValueError(f"{move.tp} has a broker twice: {list(replicas)}")
        if move.tp in seen:
            raise ValueError(f"{move.tp} is there twice")
        seen.add(move.tp)
    return MovePlan(document.cluster_id, moves, _room_of(document))


def _room_of(document: _Document) -> RoomOrder | None:
    room = document.room
    if room is None:
        return None
    if len(room.batches) != len(document.moves):
        raise ValueError(f"{len(document.moves)} moves have {len(room.batches)} batches")
    return RoomOrder(room.brokers, room.batches)

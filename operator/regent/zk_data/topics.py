"""Topics and partitions: ``/brokers/topics/<topic>`` and ``.../partitions/<partition>/state``.

Source: ``kafka.zk.TopicZNode`` and ``TopicPartitionStateZNode``. The partition state codec is the
hot one: a failover decodes every state of the cluster.
"""

from __future__ import annotations

import functools
import uuid
from collections.abc import Callable, Mapping
from itertools import islice
from typing import Annotated, Final

import msgspec

from regent.model.errors import MalformedZNodeError
from regent.model.partition import LeaderAndIsr, LeaderRecoveryState, ReplicaAssignment
from regent.model.topic import topic_id_from_text, topic_id_to_text, topic_name_problem
from regent.zk_data import paths
from regent.zk_data.decoding import (
    DECODING_ERRORS,
    INT32_MAX,
    BrokerId,
    Epoch,
    NonNegativeInt32,
    json_decoder,
    json_object,
    reason_of,
)
from regent.zk_data.operations import ZNode

Replicas = tuple[BrokerId, ...]


class TopicZNode(msgspec.Struct, frozen=True):
    """Content of a topic node.

    Attributes:
        topic_id: None for topics of inter.broker.protocol.version below 2.8 that have no id.
        assignments: By partition, in ascending order.
        problems: Why a partition of the node is missing from ``assignments``, by the partition's
            key in the JSON. A node with problems must not be written back: that would drop
            what could not be read.
        czxid: Transaction that created the node; 0 if it was not given.
    """

    topic_id: uuid.UUID | None
    assignments: dict[int, ReplicaAssignment]
    problems: dict[str, str] = {}
    czxid: int = 0

    @property
    def described_problems(self) -> str | None:
        """Why partitions are missing, of the first few, and how many more are; None if none is."""
        some = islice(self.problems.items(), _DESCRIBED)
        described = "; ".join(f"partition {_short(p)}: {_short(why)}" for p, why in some)
        more = len(self.problems) - _DESCRIBED
        return f"{described}; and {more:,} more" if more > 0 else described or None


class _Topic(msgspec.Struct):
    partitions: dict[NonNegativeInt32, Replicas] = {}
    adding_replicas: dict[NonNegativeInt32, Replicas] | None = None
    removing_replicas: dict[NonNegativeInt32, Replicas] | None = None
    topic_id: str | None = None


class _RawTopic(msgspec.Struct):
    """The same with every partition left undecoded, so that one bad entry harms only itself."""

    partitions: dict[str, msgspec.Raw] = {}
    adding_replicas: dict[str, msgspec.Raw] | None = None
    removing_replicas: dict[str, msgspec.Raw] | None = None
    topic_id: str | None = None


class _PartitionState(msgspec.Struct, gc=False):
    leader: Annotated[int, msgspec.Meta(ge=-1, le=INT32_MAX)]
    leader_epoch: Epoch
    controller_epoch: NonNegativeInt32
    isr: Replicas
    leader_recovery_state: Annotated[int, msgspec.Meta(ge=0, le=1)] = 0


_DESCRIBED: Final = 5
"""Partitions of a topic whose problems are described."""
_SHORT: Final = 200
"""Characters of the key of a partition, and of what is wrong with it, in a description."""

_NO_REPLICAS: Final[Replicas] = ()
_decode_topic_json: Final[Callable[[bytes], _Topic]] = msgspec.json.Decoder(_Topic).decode
_decode_raw_topic: Final = json_decoder(_RawTopic)
_decode_replicas: Final[Callable[[bytes | msgspec.Raw], Replicas]] = msgspec.json.Decoder(
    Replicas
).decode
_decode_state: Final = msgspec.json.Decoder(_PartitionState).decode
_decode_odd_state: Final = json_decoder(_PartitionState)


def decode_topic(topic: str, data: bytes, *, czxid: int = 0) -> TopicZNode:
    """Id and replica assignment of a topic, all versions; later ones are read as 3.

    A partition that does not decode is left out and named in ``problems``; the rest is good.

    Raises:
        MalformedZNodeError: If the node as a whole, or the topic id, does not decode. The id is not
            shrugged off: a controller gives a topic without an id a new one, and the brokers then
            refuse the topic. Or if Kafka does not allow the name: a broker that cannot create the
            directory, or cannot read its checkpoints any more (they separate names by blanks),
            takes that for a failed disk, and stops once it has no other.
    """
    path = paths.topic(topic)
    illegal = topic_name_problem(topic)
    if illegal is not None:
        raise MalformedZNodeError(path, illegal)
    try:
        decoded = _decode_topic_json(data)
    except DECODING_ERRORS:
        return _decode_topic_leniently(path, data, czxid)
    adding = decoded.adding_replicas or {}
    removing = decoded.removing_replicas or {}
    partitions = decoded.partitions
    try:
        if adding or removing:
            assignments = {
                partition: _checked(
                    ReplicaAssignment(
                        replicas,
                        adding.get(partition, _NO_REPLICAS),
                        removing.get(partition, _NO_REPLICAS),
                    )
                )
                for partition, replicas in partitions.items()
            }
        else:
            assignments = dict(zip(partitions, map(_plain, partitions.values()), strict=True))
    except _ProblemError:
        return _decode_topic_leniently(path, data, czxid)
    topic_id = _topic_id(path, decoded.topic_id)
    return TopicZNode(topic_id, _ascending(assignments), czxid=czxid)


def encode_topic(topic: TopicZNode) -> bytes:
    """Version 3 with a topic id, version 2 without, as Kafka's controllers write it.

    Raises:
        ValueError: If the node had problems when it was read.
    """
    if topic.problems:
        raise ValueError("a topic node that was read incompletely must not be written back")
    assignments = topic.assignments
    members: list[tuple[str, object]] = [
        ("version", 2 if topic.topic_id is None else 3),
        ("partitions", {str(p): a.replicas for p, a in assignments.items()}),
        (
            "adding_replicas",
            {str(p): a.adding_replicas for p, a in assignments.items() if a.adding_replicas},
        ),
        (
            "removing_replicas",
            {str(p): a.removing_replicas for p, a in assignments.items() if a.removing_replicas},
        ),
    ]
    if topic.topic_id is not None:
        members.append(("topic_id", topic_id_to_text(topic.topic_id)))
    return json_object(members)


def decode_partition_state(path: str, node: ZNode) -> LeaderAndIsr:
    """Leadership of a partition; its partition epoch is the node's dataVersion.

    Args:
        path: The state node, for the error.
        node: Data and version.

    Raises:
        MalformedZNodeError: If a field is missing, of a wrong type or out of range, or if the ISR
            names a broker twice.
    """
    try:
        state = _decode_state(node.data)
    except DECODING_ERRORS:
        state = _decode_odd_state(path, node.data)
    isr = state.isr
    if len(isr) > 1 and len(set(isr)) != len(isr):
        raise MalformedZNodeError(path, f"a broker is twice in the ISR {_short(str(list(isr)))}")
    return LeaderAndIsr(
        state.leader,
        state.leader_epoch,
        isr,
        state.controller_epoch,
        node.version,
        state.leader_recovery_state,
    )


def partition_state_decoder() -> Callable[[str, ZNode], LeaderAndIsr]:
    """:func:`decode_partition_state` for many: equal nodes are decoded once and share their value.

    A cluster has far fewer different states than partitions.
    """
    known: dict[tuple[bytes, int], LeaderAndIsr] = {}

    def decode(path: str, node: ZNode) -> LeaderAndIsr:
        key = (node.data, node.version)
        state = known.get(key)
        if state is None:
            state = known[key] = decode_partition_state(path, node)
        return state

    return decode


def encode_partition_state(state: LeaderAndIsr) -> bytes:
    """Inverse of :func:`decode_partition_state`, members in the order in which Kafka has them.

    ``leader_recovery_state`` appears only while RECOVERING: inter.broker.protocol.version below
    3.2 does not know it.
    """
    recovery = (
        b',"leader_recovery_state":1'
        if state.leader_recovery_state == LeaderRecoveryState.RECOVERING
        else b""
    )
    return b'{"controller_epoch":%d,"leader":%d,"version":1,"leader_epoch":%d,"isr":[%b]%b}' % (
        state.controller_epoch,
        state.leader,
        state.leader_epoch,
        ",".join(map(str, state.isr)).encode(),
        recovery,
    )


def partition_state_encoder() -> Callable[[LeaderAndIsr], bytes]:
    """:func:`encode_partition_state` for many, of which a lot are one and the same object."""
    known: dict[int, tuple[LeaderAndIsr, bytes]] = {}

    def encode(state: LeaderAndIsr) -> bytes:
        found = known.get(id(state))
        if found is None:  # the state is kept for its id
            found = known[id(state)] = (state, encode_partition_state(state))
        return found[1]

    return encode


def _decode_topic_leniently(path: str, data: bytes, czxid: int) -> TopicZNode:
    """Partition by partition, after something was found to be wrong."""
    raw = _decode_raw_topic(path, data)
    assignments: dict[int, ReplicaAssignment] = {}
    problems: dict[str, str] = {}
    for key, replicas in raw.partitions.items():
        try:
            partition = _partition(key)
            assignment = ReplicaAssignment(
                _decode_replicas(replicas),
                _replicas_of(raw.adding_replicas, key),
                _replicas_of(raw.removing_replicas, key),
            )
            _checked(assignment)
        except DECODING_ERRORS as error:
            problems[key] = reason_of(error)
            continue
        if partition in assignments:
            problems[key] = "the partition is listed twice"
        else:
            assignments[partition] = assignment
    topic_id = _topic_id(path, raw.topic_id)
    return TopicZNode(topic_id, _ascending(assignments), problems, czxid)


def _ascending(assignments: dict[int, ReplicaAssignment]) -> dict[int, ReplicaAssignment]:
    """In the order of the partitions, in which Kafka's controllers do not always write them."""
    partitions = sorted(assignments)
    if partitions == list(assignments):
        return assignments
    return {partition: assignments[partition] for partition in partitions}


def _replicas_of(section: Mapping[str, msgspec.Raw] | None, key: str) -> Replicas:
    raw = None if section is None else section.get(key)
    return _NO_REPLICAS if raw is None else _decode_replicas(raw)


def _short(text: str) -> str:
    """A key, or a list of replicas, may be as long as the node."""
    return text if len(text) <= _SHORT else f"{text[:_SHORT]}..."


class _ProblemError(ValueError):
    """What is wrong with a partition of a topic node."""


@functools.lru_cache(maxsize=1 << 16)
def _plain(replicas: Replicas) -> ReplicaAssignment:
    """An assignment that is not changing.

    A large cluster has far fewer different replica lists than partitions: each is checked once, and
    the partitions share it.
    """
    return _checked(ReplicaAssignment(replicas))


def _partition(key: str) -> int:
    if not (key.isascii() and key.isdigit()) or len(key) > 10 or int(key) > INT32_MAX:
        raise _ProblemError("the partition is not a number")
    return int(key)


def _checked(assignment: ReplicaAssignment) -> ReplicaAssignment:
    replicas = assignment.replicas
    if not replicas:
        raise _ProblemError("the partition has no replicas")
    if len(replicas) > 1 and len(set(replicas)) != len(replicas):
        raise _ProblemError(f"a broker is twice among the replicas {list(replicas)}")
    return assignment


def _topic_id(path: str, text: str | None) -> uuid.UUID | None:
    if text is None:
        return None
    try:
        return topic_id_from_text(text)
    except ValueError as error:
        raise MalformedZNodeError(path, f"not a topic id: {text[:40]!r}") from error

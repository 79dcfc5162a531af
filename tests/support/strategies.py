"""Hypothesis strategies for batches of control requests."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from regent.model.cluster import Broker, EndPoint
from regent.model.partition import LeaderAndIsr, ReplicaAssignment, TopicPartition
from regent.protocol.control_requests import ControlRequests, StopReplicaPartition
from regent.protocol.partition_state import PartitionState

int32 = st.integers(-(2**31), 2**31 - 1)
int64 = st.integers(-(2**63), 2**63 - 1)
texts = st.text(max_size=20)
topic_names = st.text("abcdefghijkxyz._-09", min_size=1, max_size=10) | st.just("t" * 249)
replicas = st.lists(int32, max_size=4, unique=True).map(tuple)

endpoints = st.builds(
    EndPoint,
    listener=texts,
    security_protocol=st.sampled_from(["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"]),
    host=texts,
    port=int32,
)

leaderships = st.builds(
    LeaderAndIsr,
    leader=st.integers(-2, 5) | int32,
    leader_epoch=int32,
    isr=replicas,
    controller_epoch=int32,
    partition_epoch=int32,
    leader_recovery_state=st.sampled_from([0, 0, 1]),
)

assignments = st.builds(
    ReplicaAssignment,
    replicas=replicas,
    adding_replicas=st.just(()) | replicas,
    removing_replicas=st.just(()) | replicas,
)


@st.composite
def brokers(draw: Any) -> dict[int, Broker]:
    ids = draw(st.lists(st.integers(0, 5) | int32, min_size=1, max_size=4, unique=True))
    return {
        broker_id: Broker(
            broker_id=broker_id,
            epoch=draw(int64),
            endpoints=tuple(draw(st.lists(endpoints, min_size=1, max_size=3))),
            rack=draw(st.none() | texts),
        )
        for broker_id in ids
    }


@st.composite
def control_requests(draw: Any) -> ControlRequests:
    live = draw(brokers())
    names = draw(st.lists(topic_names, max_size=4, unique=True))
    states = {
        TopicPartition(name, index): PartitionState(index, draw(leaderships), draw(assignments))
        for name in names
        for index in draw(st.lists(st.integers(0, 2**31 - 1), max_size=3, unique=True))
    }
    known = list(states)

    def some() -> list[TopicPartition]:
        keep = draw(st.lists(st.booleans(), min_size=len(known), max_size=len(known)))
        return [tp for tp, kept in zip(known, keep, strict=True) if kept]

    def offline() -> dict[TopicPartition, tuple[int, ...]]:
        return {tp: draw(replicas) for tp in some()} if draw(st.booleans()) else {}

    new = draw(st.sampled_from([st.just(False), st.just(True), st.booleans()]))
    return ControlRequests(
        controller_id=draw(int32),
        controller_epoch=draw(int32),
        brokers=live,
        topic_ids={name: draw(st.uuids()) for name in names if draw(st.booleans())},
        partitions=states,
        offline_replicas=offline(),
        leader_and_isr={broker_id: {tp: draw(new) for tp in some()} for broker_id in live},
        update_metadata_receivers=tuple(live),
        deleted_partitions=frozenset(some() if draw(st.booleans()) else ()),
        stop_replica={
            broker_id: {tp: StopReplicaPartition(draw(int32), draw(st.booleans())) for tp in some()}
            for broker_id in live
        },
        announced=draw(st.none() | brokers().map(lambda some: next(iter(some.values())))),
    )

"""The encoders of the hot path against kio's, in every version."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kio.serial import entity_reader

from regent.model.cluster import Broker, EndPoint
from regent.model.partition import LeaderAndIsr, ReplicaAssignment, TopicPartition
from regent.protocol import leader_and_isr, stop_replica, update_metadata
from regent.protocol.control_requests import ControlRequests, PartitionState
from regent.protocol.request_encoder import RequestEncoder
from tests.support import reference_requests as reference
from tests.support.strategies import control_requests
from tests.support.stub_broker import encode


@pytest.mark.parametrize("version", leader_and_isr.VERSIONS)
@settings(max_examples=50)
@given(requests=control_requests(), listener=st.none() | st.text(max_size=3))
def test_leader_and_isr_has_the_bytes_of_kio(
    requests: ControlRequests, listener: str | None, version: int
) -> None:
    encoder = RequestEncoder(requests, listener=listener)
    for broker_id in requests.leader_and_isr:
        expected = reference.leader_and_isr(requests, broker_id, version=version, listener=listener)
        assert b"".join(encoder.leader_and_isr(broker_id, version)) == encode(expected)


@pytest.mark.parametrize("version", update_metadata.VERSIONS)
@settings(max_examples=50)
@given(requests=control_requests())
def test_update_metadata_has_the_bytes_of_kio(requests: ControlRequests, version: int) -> None:
    encoder = RequestEncoder(requests)
    for broker_id in requests.update_metadata_receivers:
        expected = reference.update_metadata(requests, broker_id, version=version)
        assert b"".join(encoder.update_metadata(broker_id, version)) == encode(expected)


@pytest.mark.parametrize("version", stop_replica.VERSIONS)
@settings(max_examples=50)
@given(requests=control_requests())
def test_stop_replica_has_the_bytes_of_kio(requests: ControlRequests, version: int) -> None:
    encoder = RequestEncoder(requests)
    for broker_id, wanted in requests.stop_replica.items():
        for part in stop_replica.split(wanted, version=version):
            expected = reference.stop_replica(requests, broker_id, version=version, partitions=part)
            body = encoder.stop_replica(broker_id, version, partitions=part)
            assert b"".join(body) == encode(expected)


@settings(max_examples=50)
@given(requests=control_requests())
def test_an_encoder_serves_all_requests_and_versions_at_once(requests: ControlRequests) -> None:
    """Nothing that one version leaves behind is seen in another; nor does releasing matter."""
    encoder = RequestEncoder(requests)
    broker_id = next(iter(requests.brokers))
    for _ in range(2):
        for version in leader_and_isr.VERSIONS:
            assert encoder.leader_and_isr(broker_id, version) == RequestEncoder(
                requests
            ).leader_and_isr(broker_id, version)
        for version in update_metadata.VERSIONS:
            assert encoder.update_metadata(broker_id, version) == RequestEncoder(
                requests
            ).update_metadata(broker_id, version)
        encoder.release()


@settings(max_examples=50)
@given(requests=control_requests())
def test_receivers_share_the_large_part_of_update_metadata(requests: ControlRequests) -> None:
    encoder = RequestEncoder(requests)
    shared = {id(encoder.update_metadata(b, 6)[1]) for b in requests.update_metadata_receivers}
    assert len(shared) == 1


@settings(max_examples=50)
@given(requests=control_requests())
def test_stop_replica_is_split_by_its_delete_flag_up_to_version_2(
    requests: ControlRequests,
) -> None:
    for wanted in requests.stop_replica.values():
        parts = stop_replica.split(wanted, version=2)
        assert [tp for part in parts for tp in part] == sorted(
            wanted, key=lambda tp: not wanted[tp].delete
        )
        flags = [{stop.delete for stop in part.values()} for part in parts]
        assert flags in ([], [{True}], [{False}], [{True}, {False}])
        assert stop_replica.split(wanted, version=3) == [wanted]


def test_partitions_of_a_topic_need_not_be_adjacent() -> None:
    requests = _two_topics_interleaved()
    expected = {"a": [0, 1], "b": [0]}
    for version in (2, 7):
        body = b"".join(RequestEncoder(requests).leader_and_isr(1, version))
        entity = reference.leader_and_isr(requests, 1, version=version)
        decoded, used = entity_reader(type(entity))(body, 0)
        assert used == len(body)
        assert {
            topic.topic_name: [state.partition_index for state in topic.partition_states]
            for topic in decoded.topic_states
        } == expected


def _two_topics_interleaved() -> ControlRequests:
    partitions = [TopicPartition("a", 0), TopicPartition("b", 0), TopicPartition("a", 1)]
    state = PartitionState(LeaderAndIsr(1, 0, (1,), 1, 0), ReplicaAssignment((1,)))
    return ControlRequests(
        controller_id=7,
        controller_epoch=1,
        brokers={1: Broker(1, 10, (EndPoint("PLAINTEXT", "PLAINTEXT", "h", 9092),))},
        topic_ids={},
        partitions=dict.fromkeys(partitions, state),
        offline_replicas={},
        leader_and_isr={1: dict.fromkeys(partitions, False)},
        update_metadata=tuple(partitions),
        update_metadata_receivers=(1,),
        deleted_partitions=frozenset(),
        stop_replica={},
    )

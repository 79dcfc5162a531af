"""The encoders of the hot path against kio's, in every version."""

from __future__ import annotations

import itertools

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from regent.model.partition import LeaderAndIsr, ReplicaAssignment
from regent.protocol import leader_and_isr, stop_replica, update_metadata
from regent.protocol.control_codec import encode_body
from regent.protocol.control_requests import (
    BrokerList,
    ControlHeader,
    ControlRequests,
    UpdateMetadataRequest,
)
from regent.protocol.framing import joined
from regent.protocol.partition_state import PartitionState, prefixes_of
from tests.support import reference_requests as reference
from tests.support.leadership_entries import entries_of, is_usual
from tests.support.strategies import control_requests
from tests.support.stub_broker import encode
from tests.support.unmerged_requests import (
    leader_and_isr_to,
    stop_replica_to,
    update_metadata_to,
    updates_of,
)


@given(batch=control_requests(), listener=st.none() | st.text(max_size=3))
def test_every_version_has_the_bytes_of_kio(batch: ControlRequests, listener: str | None) -> None:
    """Also a second time: what a value has kept for one request is right in all others."""
    for _, broker_id in itertools.product(range(2), batch.brokers):
        request, update = leader_and_isr_to(batch, broker_id), update_metadata_to(batch, broker_id)
        for version in leader_and_isr.VERSIONS:
            expected = encode(reference.leader_and_isr(request, version=version, listener=listener))
            assert encode_body(request, version=version, listener=listener) == (expected,)
        for version in update_metadata.VERSIONS:
            expected = encode(reference.update_metadata(update, version=version))
            assert joined(encode_body(update, version=version)) == expected
        for stop, version in itertools.product(
            stop_replica_to(batch, broker_id), stop_replica.VERSIONS
        ):
            expected = encode(reference.stop_replica(stop, version=version))
            assert joined(encode_body(stop, version=version)) == expected


@given(
    batch=control_requests(),
    lacks_one=st.booleans(),
    protocol=st.sampled_from([(2, 6), (3, 1), (3, 2), (3, 9)]),
)
def test_collected_leadership_has_the_bytes_of_kio(
    batch: ControlRequests, lacks_one: bool, protocol: tuple[int, int]
) -> None:
    """Also where a topic was left out or is not complete, or for another version."""
    suffix = leader_and_isr.usual_suffix(protocol)
    for broker_id, named in batch.leader_and_isr.items():
        partitions = sorted(named)
        unusual = {tp.topic for tp in partitions if not is_usual(batch.partitions[tp])}
        usual = [tp for tp in partitions if tp.topic not in unusual]
        plain = msgspec.structs.replace(
            leader_and_isr_to(batch, broker_id), partitions=dict.fromkeys(partitions, False)
        )
        for version in leader_and_isr.VERSIONS:
            collected = entries_of(usual[lacks_one:], batch.partitions, suffix=suffix)
            request = msgspec.structs.replace(plain, entries=collected)
            body = encode_body(request, version=version)
            expected = encode(reference.leader_and_isr(plain, version=version))
            for _ in range(2):  # a request may have to be repeated
                assert joined(body) == expected
            assert sum(map(len, body)) == len(expected)
            if usual and not lacks_one:
                is_used = version >= 4 and (version >= 6) is (protocol >= (3, 2))
                assert (len(body) > 1) is is_used


@given(batch=control_requests())
def test_receivers_share_the_large_parts_of_update_metadata(batch: ControlRequests) -> None:
    brokers, updates = BrokerList(batch.brokers), updates_of(batch)
    bodies = [
        encode_body(
            UpdateMetadataRequest(ControlHeader(1, 2, broker_id, 3), brokers, updates), version=6
        )
        for broker_id in range(3)
    ]
    assert len({tuple(map(id, body[1:])) for body in bodies}) == 1


def test_the_bytes_of_a_partition_are_made_once_in_each_encoding() -> None:
    state = PartitionState(7, LeaderAndIsr(1, 0, (1, 2), 1, 0), ReplicaAssignment((1, 2)))
    for flexible in (False, True):
        (first,), (second,) = (prefixes_of([state], flexible=flexible) for _ in range(2))
        assert first is second
    assert state == PartitionState(7, LeaderAndIsr(1, 0, (1, 2), 1, 0), ReplicaAssignment((1, 2)))
    assert state != PartitionState(8, state.leader_and_isr, state.assignment)

"""What a new controller sends of all partitions, collected by broker and topic in one walk."""

from __future__ import annotations

import pytest

from regent.model.partition import TopicPartition
from regent.protocol.collected_entries import NOTHING_COLLECTED
from regent.protocol.control_codec import encode_body
from regent.protocol.control_requests import ControlHeader, ControlRequests, LeaderAndIsrRequest
from regent.protocol.framing import joined
from regent.protocol.leader_and_isr import usual_suffix
from tests.support.leadership_entries import entries_of
from tests.unit.controller.world import World

A0, A1, B0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)


def cluster(*, recovering: int = 0) -> World:
    world = World()
    world.start_broker(1, 2, 3)
    world.create_topic("a", {0: (1, 2), 1: (2, 3)})
    world.create_topic("b", {0: (3, 1)})
    world.set_state(A0, 1, (1, 2), leader_epoch=5)
    world.set_state(A1, 2, (2, 3), leader_epoch=6, leader_recovery_state=recovering)
    world.set_state(B0, 3, (3,), leader_epoch=7)
    return world


def first_batch(world: World) -> ControlRequests:
    """The batch of a failover with the replicas of all brokers."""
    world.fail_over()
    return next(requests for requests in world.driver.sent if requests.leader_and_isr)


def encoded(requests: ControlRequests, broker_id: int, *, collected: bool) -> bytes:
    request = LeaderAndIsrRequest(
        ControlHeader(requests.controller_id, requests.controller_epoch, broker_id, 0),
        requests.leader_and_isr[broker_id],
        requests.partitions,
        requests.topic_ids,
        requests.brokers,
        requests.entries[broker_id] if collected else NOTHING_COLLECTED,
    )
    return joined(encode_body(request, version=7, listener=None))


def test_each_broker_has_its_partitions_and_their_bytes_topic_by_topic() -> None:
    world = cluster()
    requests = first_batch(world)
    assert {b: list(named) for b, named in requests.leader_and_isr.items()} == {
        1: [A0, B0],
        2: [A0, A1],
        3: [A1, B0],
    }
    states, suffix = requests.partitions, usual_suffix(world.driver.inter_broker_protocol)
    for broker_id, named in requests.leader_and_isr.items():
        assert requests.entries[broker_id] == entries_of(named, states, suffix=suffix)


@pytest.mark.parametrize("recovering", [0, 1])
def test_requests_are_the_same_bytes_as_without_what_was_collected(recovering: int) -> None:
    requests = first_batch(cluster(recovering=recovering))
    for broker_id in (1, 2, 3):
        with_entries = encoded(requests, broker_id, collected=True)
        assert with_entries == encoded(requests, broker_id, collected=False)


def test_a_topic_with_a_leader_that_recovers_is_left_out_of_the_bytes() -> None:
    """What follows its bytes differs. Its partitions are named all the same."""
    requests = first_batch(cluster(recovering=1))
    assert [list(requests.entries[b].topics) for b in (1, 2, 3)] == [["b"], [], ["b"]]
    assert list(requests.leader_and_isr[2]) == [A0, A1]


def test_older_brokers_are_sent_another_encoding_for_which_nothing_is_collected() -> None:
    world = cluster()
    world.driver.inter_broker_protocol = (2, 3)
    requests = first_batch(world)
    assert requests.entries == {}
    assert list(requests.leader_and_isr[2]) == [A0, A1]


@pytest.mark.parametrize("number", [1, 2])
def test_a_partition_without_leadership_changes_nothing_for_the_others(number: int) -> None:
    """It gets its first leader later: it is no part of the first requests."""
    world = cluster()
    topic = "b" if number == 1 else "new"
    world.create_topic(topic, {0: (3, 1), number: (2, 1)} if topic == "b" else {0: (2, 1)})
    requests = first_batch(world)
    expected = first_batch(cluster())
    assert dict(requests.partitions.items()) == dict(expected.partitions.items())
    assert {b: list(some) for b, some in requests.leader_and_isr.items()} == {
        b: list(some) for b, some in expected.leader_and_isr.items()
    }
    for broker_id in (1, 2, 3):
        assert encoded(requests, broker_id, collected=True) == encoded(
            requests, broker_id, collected=False
        )
        assert requests.entries[broker_id] == expected.entries[broker_id]

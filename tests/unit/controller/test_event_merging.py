"""Waiting events that say the same become one; no source is heard out of order."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regent.admin.commands import CreateTopic
from regent.controller import events as e
from regent.controller.commands import ControlledShutdown
from regent.controller.event_merging import EventQueue
from regent.protocol.control_requests import (
    LeaderAndIsrResponse,
    StopReplicaResponse,
    UpdateMetadataResponse,
)

LOOK_AGAIN = (
    e.ControllerChange,
    e.SessionReconnected,
    e.BrokerChange,
    e.TopicChange,
    e.TopicDeletion,
    e.ZkPartitionReassignment,
    e.IsrChangeNotification,
    e.LogDirEventNotification,
    e.ConfigChange,
)
CONTROL = (e.Startup, e.Eligible, e.NotEligible, e.Reelect, e.SessionEstablished)


def led(broker_id: int, code: int = 0) -> e.LeaderAndIsrResponseReceived:
    return e.LeaderAndIsrResponseReceived((LeaderAndIsrResponse(broker_id, code, {}, {}),))


def updated(broker_id: int, code: int = 0) -> e.UpdateMetadataResponseReceived:
    return e.UpdateMetadataResponseReceived((UpdateMetadataResponse(broker_id, code),))


def stopped(broker_id: int, code: int = 0) -> e.StopReplicaResponseReceived:
    return e.StopReplicaResponseReceived((StopReplicaResponse(broker_id, code, {}, {}),))


def commands(number: int) -> e.CommandsReceived:
    return e.CommandsReceived((CreateTopic(f"t{number}", 1),), reply_to=number)


def shutdown_of(broker_id: int) -> e.ControllerEvent:
    return e.commands_received((ControlledShutdown(broker_id, 1),), reply_to=broker_id)


def merged(*events: e.ControllerEvent) -> list[e.ControllerEvent]:
    queue = EventQueue()
    for number, event in enumerate(events):
        queue.put(event, now=number)
    return [queue.take().event for _ in range(len(queue))]


@pytest.mark.parametrize("kind", LOOK_AGAIN)
def test_looking_again_once_is_enough(kind: type[e.ControllerEvent]) -> None:
    between = (e.Eligible(), commands(1), led(1), e.PartitionModifications(("t",)))
    assert merged(kind(), *between, kind(), kind()) == [kind(), *between]


def test_many_grown_topics_are_one_event_and_a_topic_is_named_once() -> None:
    events = [e.PartitionModifications((f"t{n % 3}",)) for n in range(1000)]
    assert merged(*events) == [e.PartitionModifications(("t0", "t1", "t2"))]
    assert merged(e.BrokerModifications((2,)), e.BrokerModifications((1,))) == [
        e.BrokerModifications((2, 1))
    ]


def test_answers_of_many_brokers_to_many_kinds_of_requests_are_one_event_of_each_kind() -> None:
    events = [answer(broker_id) for broker_id in range(1, 9) for answer in (led, updated, stopped)]
    taken = merged(*events)
    assert [type(event) for event in taken] == [type(event) for event in events[:3]]
    for event in taken:
        answered = [response.broker_id for response in event.responses]  # type: ignore[attr-defined]
        assert answered == list(range(1, 9))


def test_brokers_that_wait_to_be_shut_down_are_one_set_with_an_answer_each() -> None:
    between = (commands(1), led(1), updated(2))
    (both, *rest) = merged(shutdown_of(1), *between, shutdown_of(2))
    assert rest == list(between)
    assert isinstance(both, e.ControlledShutdownReceived)
    assert [request.reply_to for request in both.requests] == [1, 2]
    assert [request.commands for request in both.requests] == [
        (ControlledShutdown(1, 1),),
        (ControlledShutdown(2, 1),),
    ]


def test_a_request_with_other_commands_is_no_request_of_a_broker() -> None:
    mixed = (ControlledShutdown(1, 1), CreateTopic("t", 1))
    assert type(e.commands_received(mixed, reply_to=1)) is e.CommandsReceived
    assert type(e.commands_received((), reply_to=1)) is e.CommandsReceived


def test_the_expiry_of_the_session_comes_first_and_once() -> None:
    assert merged(commands(1), e.Expire(), e.Expire()) == [e.Expire(), commands(1)]


def test_a_shutdown_comes_next_and_leaves_only_commands_to_be_answered() -> None:
    shutdown = e.Shutdown(reply_to=1)
    waiting = (e.TopicChange(), commands(1), e.Eligible(), led(1))
    late = (e.Eligible(), e.TopicChange(), commands(2), led(1))
    assert merged(*waiting, shutdown, *late) == [shutdown, commands(1), commands(2)]
    assert merged(*waiting, e.Expire(), shutdown, *late) == [
        e.Expire(),
        shutdown,
        commands(1),
        commands(2),
    ]
    assert merged(*waiting, shutdown, e.Expire())[:2] == [e.Expire(), shutdown]


def test_the_time_in_the_queue_is_that_of_the_oldest() -> None:
    queue = EventQueue()
    for now in (1.0, 2.0, 3.0):
        queue.put(led(int(now)), now=now)
    assert queue.take().queued_at == 1.0


brokers = st.integers(1, 3)
unique = st.uuids().map(lambda number: number.int)  # so that each can be found again
any_event: st.SearchStrategy[Any] = st.one_of(
    st.sampled_from([kind() for kind in LOOK_AGAIN]),
    st.sampled_from(CONTROL).map(lambda kind: kind()),
    unique.map(lambda number: e.PartitionModifications((f"t{number}",))),
    unique.map(lambda number: e.BrokerModifications((number,))),
    st.builds(
        lambda answer, broker_id, code: answer(broker_id, code),
        st.sampled_from([led, updated, stopped]),
        brokers,
        unique,
    ),
    unique.map(commands),
    unique.map(shutdown_of),
)


def _source(event: e.ControllerEvent) -> Hashable:
    if isinstance(event, e.CommandsReceived):
        return "commands"
    if isinstance(event, e.ControlledShutdownReceived):
        return f"request {event.requests[0].reply_to}"
    responses = getattr(event, "responses", None)
    if responses is not None:
        broker_id: int = responses[0].broker_id
        return broker_id
    return None if isinstance(event, CONTROL) else "ZooKeeper"


def _covers(taken: e.ControllerEvent, put: e.ControllerEvent) -> bool:
    if isinstance(put, CONTROL):
        return taken is put
    if type(taken) is not type(put):
        return False
    if taken == put:
        return True
    fields = taken.__struct_fields__
    if fields not in (("topics",), ("broker_ids",), ("responses",), ("requests",)):
        return False
    return set(map(repr, getattr(put, fields[0]))) <= set(map(repr, getattr(taken, fields[0])))


@settings(max_examples=200, deadline=None)
@given(st.lists(any_event | st.none(), max_size=30))
def test_nothing_is_lost_and_no_source_is_heard_out_of_order(
    steps: list[e.ControllerEvent | None],
) -> None:
    """None takes an event."""
    queue = EventQueue()
    put: list[tuple[e.ControllerEvent, int]] = []
    taken: list[e.ControllerEvent] = []
    for step in [*steps, *[None] * len(steps)]:
        if step is not None:
            queue.put(step, now=0)
            put.append((step, len(taken)))
        elif len(queue):
            taken.append(queue.take().event)
    assert len(queue) == 0

    def handled(event: e.ControllerEvent, since: int) -> int:
        return next(n for n in range(since, len(taken)) if _covers(taken[n], event))

    places = [(event, handled(event, since)) for event, since in put]
    for number, (later, its_place) in enumerate(places):
        if isinstance(later, LOOK_AGAIN):
            continue
        for earlier, place in places[:number]:
            if _source(earlier) in (None, _source(later)):
                assert place <= its_place
    kept = [event for event in taken if isinstance(event, e.CommandsReceived)]
    assert kept == [event for event, _ in put if isinstance(event, e.CommandsReceived)]

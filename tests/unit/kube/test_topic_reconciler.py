"""What is sent to the controller, and when not, against a store that behaves as the API server."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from datetime import timedelta

import msgspec
import pytest

from regent.admin.commands import CreateTopic, DeleteTopic
from regent.kube.errors import (
    KubeSchemaError,
)
from regent.resources.kafka_topic import FINALIZER
from tests.unit.kube.stored_objects import body
from tests.unit.kube.topic_bench import DRAWN, ID, OWNED, Bench, a_topic


def test_nothing_is_created_while_an_older_definition_drops_the_intent() -> None:
    bench = Bench(body(version="5", adoptionPolicy="Refuse"))
    bench.store.unknown_fields = frozenset({"intendedTopicId"})
    with pytest.raises(KubeSchemaError, match=r"status\.intendedTopicId.*regent crds"):
        bench.reconcile()
    assert bench.port.commands == []


def test_a_field_that_nothing_depends_on_may_be_dropped_by_an_older_definition() -> None:
    bench = Bench(body(version="5"))
    bench.store.unknown_fields = frozenset({"clusterId"})
    bench.reconcile()
    assert len(bench.port.commands) == 1


def test_a_topic_that_is_created_and_shows_costs_a_finalizer_and_one_status() -> None:
    bench = Bench(body(version="5"))

    def show() -> None:
        (command,) = bench.port.commands
        assert isinstance(command, CreateTopic)
        assert command.topic_id is not None
        topics = {"orders": a_topic(command.topic_id)}
        bench.port.view = msgspec.structs.replace(bench.port.view, topics=topics)

    bench.reconcile(times=2, every_s=1, between=show)
    finalizer, status = bench.store.patches
    assert finalizer["metadata"]["finalizers"] == [FINALIZER]
    assert status["status"]["ownership"] == "Created"
    assert bench.events == [("Normal", "TopicCreated")]


@pytest.mark.parametrize("dropped", [("ownership",), ("ownership", "topicId", "topicCzxid")])
def test_a_lost_topic_is_not_created_again_where_its_ownership_is_not_stored(
    dropped: Sequence[str],
) -> None:
    """An admission policy may change a status, and people may edit it."""
    bench = Bench(body(version="5"))
    bench.store.unknown_fields = frozenset(dropped)

    def show_and_lose() -> None:
        topics = {}
        if len(bench.looks) == 1:
            command = bench.port.commands[0]
            assert isinstance(command, CreateTopic)
            assert command.topic_id is not None
            topics = {"orders": msgspec.structs.replace(a_topic(command.topic_id), czxid=7)}
        bench.port.view = msgspec.structs.replace(bench.port.view, topics=topics)

    bench.reconcile(times=6, every_s=60, between=show_and_lose)
    assert [type(command) for command in bench.port.commands].count(CreateTopic) == 1
    assert bench.events.count(("Warning", "TopicDeletedExternally")) == 1
    assert bench.losses == 1
    after_a_restart = Bench(bench.stored)
    after_a_restart.store.unknown_fields = bench.store.unknown_fields
    after_a_restart.reconcile(times=2, every_s=60)
    assert after_a_restart.port.commands == []


def test_an_outranked_intent_sends_no_command() -> None:
    newer = {"controllerEpoch": 9, "clusterId": "c"}
    bench = Bench(body(version="5", adoptionPolicy="Refuse", status=newer))
    bench.reconcile()
    assert bench.port.commands == []
    assert bench.stored["status"] == newer
    assert bench.looks[0], "it is requeued, but not at once"


def test_a_status_that_no_newer_controller_can_have_written_is_overwritten() -> None:
    backup = {**OWNED, "controllerEpoch": 9}
    bench = Bench(body(version="5", status=backup, metadata={"finalizers": [FINALIZER]}))
    bench.reconcile(times=12, every_s=10)
    assert bench.stored["status"] == backup
    assert bench.events == []
    bench.reconcile(times=14, every_s=10)
    assert bench.stored["status"]["controllerEpoch"] == 5
    assert bench.stored["status"]["ownership"] == "Lost"
    assert bench.events == [("Warning", "TopicDeletedExternally")]


def test_in_a_new_term_a_status_of_a_newer_controller_is_left_alone_as_long_again() -> None:
    newer = {**OWNED, "controllerEpoch": 9}
    bench = Bench(body(version="5", status=newer, metadata={"finalizers": [FINALIZER]}))
    epochs = iter((6, 7, 8))

    def begin_term() -> None:
        if len(bench.looks) % 10 == 0:
            bench.port.view = msgspec.structs.replace(
                bench.port.view, controller_epoch=next(epochs)
            )

    bench.reconcile(times=30, every_s=10, between=begin_term)
    assert bench.stored["status"] == newer


def test_a_status_that_a_newer_controller_writes_again_and_again_is_left_alone() -> None:
    newer = {**OWNED, "controllerEpoch": 9}
    bench = Bench(body(version="5", status=newer, metadata={"finalizers": [FINALIZER]}))

    def write_again() -> None:
        bench.stored["status"]["underReplicated"] = len(bench.looks)
        bench.store.change()
        bench.cache.put(copy.deepcopy(bench.stored))

    bench.reconcile(times=30, every_s=10, between=write_again)
    assert bench.stored["status"]["controllerEpoch"] == 9
    assert bench.stored["status"]["ownership"] == "Created"


def test_a_resource_that_changes_while_the_intent_is_stored_is_thought_over() -> None:
    bench = Bench(body(version="5", adoptionPolicy="Refuse", metadata={"finalizers": [FINALIZER]}))

    def pause() -> None:
        bench.stored["spec"]["managementPolicy"] = "Paused"
        bench.store.change(generation=2)

    bench.store.before_write = [pause]
    bench.reconcile()
    assert bench.port.commands == []


def test_a_finalizer_is_not_removed_for_a_spec_that_is_not_current_any_more() -> None:
    going = {"finalizers": [FINALIZER], "deletionTimestamp": "2026-01-01T00:00:00Z"}
    bench = Bench(
        body(version="5", deletionPolicy="Retain", status=OWNED, metadata=going), a_topic()
    )

    def protect() -> None:
        bench.stored["spec"]["deletionPolicy"] = "Delete"
        bench.store.change(generation=2)

    bench.store.before_write = [protect]
    bench.reconcile()
    assert bench.stored["metadata"]["finalizers"] == [FINALIZER]
    assert bench.events == []
    assert bench.looks == [0.0]
    bench.reconcile()
    assert DeleteTopic("orders", ID) in bench.port.commands


def test_a_deletion_that_comes_in_the_middle_of_a_look_is_sent_once() -> None:
    bench = Bench(body(version="5"))

    def show_and_delete() -> None:
        view = bench.port.view
        bench.port.view = msgspec.structs.replace(view, topics={"orders": a_topic(DRAWN)})
        bench.store.change(generation=2, deletionTimestamp="2026-01-01T00:00:00Z")
        bench.cache.put(copy.deepcopy(bench.stored))

    bench.port.after_creation = show_and_delete
    bench.reconcile()
    assert bench.port.commands[1:] == [DeleteTopic("orders", DRAWN)]
    assert bench.events == [("Normal", "TopicCreated"), ("Normal", "TopicDeletionStarted")]


def test_a_loss_is_reported_and_counted_once() -> None:
    owner = {"finalizers": [FINALIZER]}
    bench = Bench(body(version="5", status=OWNED, metadata=owner))
    assert bench.losses == 0
    bench.reconcile(times=3)
    assert bench.port.commands == []
    assert bench.events == [("Warning", "TopicDeletedExternally")]
    assert bench.losses == 1
    assert bench.stored["status"]["ownership"] == "Lost"


def test_a_loss_is_reported_though_the_topic_is_created_again() -> None:
    owner = {"finalizers": [FINALIZER]}
    bench = Bench(body(version="5", status=OWNED, metadata=owner, onForeignDeletion="Recreate"))
    bench.reconcile(times=2)
    (command,) = bench.port.commands
    assert isinstance(command, CreateTopic)
    assert command.topic_id == DRAWN
    assert bench.events == [("Warning", "TopicDeletedExternally"), ("Normal", "TopicCreated")]
    assert bench.losses == 1


def test_a_clock_that_is_set_back_delays_no_command() -> None:
    bench = Bench(body(version="5"))

    def set_back() -> None:
        bench.now -= timedelta(hours=1)

    bench.reconcile(times=3, every_s=10, between=set_back)
    assert len(bench.port.commands) == 3, "a creation that does not show is sent again after 10 s"


def test_a_clock_that_jumps_ahead_makes_nobody_forget_what_was_just_created() -> None:
    bench = Bench(body(version="5"))

    def jump_ahead() -> None:
        bench.now += timedelta(hours=1)
        gone = {"deletionTimestamp": "2026-01-01T00:00:00Z"}
        bench.store.change(generation=2, **gone)
        bench.cache.put(copy.deepcopy(bench.stored))

    bench.reconcile(times=2, every_s=1, between=jump_ahead)
    assert bench.stored["metadata"]["finalizers"] == [FINALIZER], "the topic is about to show"

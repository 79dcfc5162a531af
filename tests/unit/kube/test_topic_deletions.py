"""A KafkaTopic is deleted: the API server is asked whether its definition is, too."""

from __future__ import annotations

import asyncio
import copy
from typing import Any

import pytest

from regent.kube.errors import KubeRightLostError
from regent.resources.kafka_topic import FINALIZER
from tests.unit.kube.stored_objects import body
from tests.unit.kube.topic_bench import OWNED, Bench, a_topic


def deleted() -> dict[str, Any]:
    """A KafkaTopic that owns its topic and is being deleted."""
    metadata = {"finalizers": [FINALIZER], "deletionTimestamp": "2026-01-01T00:00:00Z"}
    return body(version="5", metadata=metadata, status=OWNED)


def retain(bench: Bench) -> None:
    """Somebody wants the topic to stay."""
    bench.stored["spec"]["deletionPolicy"] = "Retain"
    bench.store.change(generation=2)
    bench.cache.put(copy.deepcopy(bench.stored))


def test_a_topic_is_not_deleted_because_the_definition_of_its_resource_is() -> None:
    bench = Bench(deleted(), a_topic())
    bench.definition_goes = True
    bench.reconcile()
    assert bench.port.commands == []
    assert bench.stored["metadata"]["finalizers"] == []
    assert bench.events == [("Normal", "TopicRetained")]
    assert bench.ages == [0.0], "an earlier answer says nothing"


def test_a_topic_is_kept_that_somebody_retains_while_its_deletion_waits_to_be_sent() -> None:
    """Behind another submission, as long as a slow ZooKeeper takes."""
    bench = Bench(deleted(), a_topic())

    def retain_soon() -> None:
        asyncio.get_running_loop().call_soon(retain, bench)

    bench.on_question = retain_soon
    bench.reconcile()
    assert bench.port.commands == []
    assert bench.stored["metadata"]["finalizers"] == []
    assert bench.events == [("Normal", "TopicRetained")]


def test_a_topic_is_handed_over_that_another_resource_declares_while_its_deletion_waits() -> None:
    """The resource itself has not changed."""
    bench = Bench(deleted(), a_topic())

    def declare_soon() -> None:
        successor = body("successor", version="6", topicName="orders")
        asyncio.get_running_loop().call_soon(bench.cache.put, successor)

    bench.on_question = declare_soon
    bench.reconcile()
    assert bench.port.commands == []
    assert bench.stored["metadata"]["finalizers"] == []
    assert bench.events == [("Normal", "TopicHandedOver")]


def test_an_event_says_that_a_right_is_lost_without_which_no_topic_is_deleted() -> None:
    """It is no word about what Regent writes, which nobody refuses."""
    bench = Bench(deleted(), a_topic())

    def refuse() -> None:
        raise KubeRightLostError("Regent may not read that any more", status=403)

    bench.on_question = refuse
    with pytest.raises(KubeRightLostError):
        bench.reconcile()
    assert bench.port.commands == []
    assert bench.events == [("Warning", "RightLost")]
    assert "may not read" in bench.store.created[0]["message"]


def test_a_protected_topic_does_not_hold_up_the_end_of_the_definition() -> None:
    """Also if the definition is deleted after the resource: nothing else says so."""
    stored = deleted()
    stored["spec"]["deletionPolicy"] = "Protect"
    bench = Bench(stored, a_topic())

    def delete_definition() -> None:
        assert bench.stored["metadata"]["finalizers"] == [FINALIZER]
        assert bench.looks == [60.0]
        bench.definition_goes = True

    bench.reconcile(times=2, between=lambda: None if bench.definition_goes else delete_definition())
    assert bench.port.commands == []
    assert bench.stored["metadata"]["finalizers"] == []
    assert ("Normal", "TopicRetained") in bench.events

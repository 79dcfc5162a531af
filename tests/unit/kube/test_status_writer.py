"""Writes to objects, against a store that behaves as the API server does about versions."""

from __future__ import annotations

import json
from typing import Any

import pytest

from regent.kube.errors import KubeConflictError
from regent.kube.object_cache import ObjectKey
from regent.kube.status_writer import StatusWriter, WriteResult, _differences
from regent.reconcile.topics.kind import KAFKA_TOPIC
from regent.resources.kafka_topic import FINALIZER
from regent.resources.kafka_topic_status import KafkaTopicStatus
from tests.support.present import present
from tests.unit.kube.jumping_clock import run
from tests.unit.kube.stored_objects import Store, body, key, topic_cache


class Bench:
    def __init__(self, stored: dict[str, Any] | None = None) -> None:
        self.store = Store(body(version="5") if stored is None else stored)
        self.cache, _ = topic_cache()
        self.cache.put(json.loads(json.dumps(self.store.stored)))
        self.news: list[frozenset[ObjectKey]] = []
        self.writer = StatusWriter(self.store, KAFKA_TOPIC, self.cache, on_news=self.news.append)

    def write(self, **fields: Any) -> WriteResult:
        return run(self.writer.write_status(key(), "uid-orders", KafkaTopicStatus(**fields)))

    def remove(self, *, generation: int = 1) -> WriteResult:
        """Remove the finalizer as decided for a generation."""
        removal = self.writer.remove_finalizer(key(), "uid-orders", generation=generation)
        return run(removal)

    @property
    def status(self) -> dict[str, Any]:
        assert self.store.stored is not None
        status: dict[str, Any] = self.store.stored["status"]
        return status


def test_only_differences_are_written_and_the_answer_is_no_news() -> None:
    bench = Bench(body(version="5", status={"partitions": 1, "topicName": "orders"}))
    assert bench.write(partitions=2, replicas=3) is WriteResult.WRITTEN
    assert bench.store.patches == [
        {
            "metadata": {"resourceVersion": "5"},
            "status": {"topicName": None, "partitions": 2, "replicas": 3},
        }
    ]
    assert bench.news == [frozenset()]
    assert bench.write(partitions=2, replicas=3) is WriteResult.UNCHANGED
    assert bench.writer.writes == 1


def test_the_epoch_alone_is_no_difference() -> None:
    bench = Bench(body(version="5", status={"partitions": 1, "controllerEpoch": 3}))
    assert bench.write(partitions=1, controller_epoch=4) is WriteResult.UNCHANGED
    assert bench.write(partitions=2, controller_epoch=4) is WriteResult.WRITTEN
    assert bench.status == {"partitions": 2, "controllerEpoch": 4}


def test_a_higher_epoch_is_never_overwritten() -> None:
    bench = Bench(body(version="5", status={"controllerEpoch": 9}))
    assert bench.write(partitions=2, controller_epoch=8) is WriteResult.OUTRANKED
    assert bench.store.patches == []


def test_a_higher_epoch_that_came_meanwhile_neither() -> None:
    bench = Bench()

    def rival() -> None:
        bench.status["controllerEpoch"] = 9
        bench.store.change()

    bench.store.before_write = [rival]
    assert bench.write(partitions=2, controller_epoch=8) is WriteResult.OUTRANKED
    assert bench.status == {"controllerEpoch": 9}


def test_epochs_of_different_clusters_are_not_compared() -> None:
    bench = Bench(body(version="5", status={"controllerEpoch": 9, "clusterId": "before"}))
    wanted = {"partitions": 2, "controller_epoch": 1}
    assert bench.write(**wanted, cluster_id="now") is WriteResult.WRITTEN
    assert bench.status == {"partitions": 2, "controllerEpoch": 1, "clusterId": "now"}
    same = Bench(body(version="5", status={"controllerEpoch": 9, "clusterId": "now"}))
    assert same.write(**wanted, cluster_id="now") is WriteResult.OUTRANKED
    unknown = Bench(body(version="5", status={"controllerEpoch": 9}))
    assert unknown.write(**wanted, cluster_id="now") is WriteResult.OUTRANKED


def test_a_conflict_is_read_and_written_again() -> None:
    bench = Bench()
    bench.store.before_write = [lambda: bench.store.change(generation=2)]
    assert bench.write(partitions=2) is WriteResult.WRITTEN
    assert bench.status == {"partitions": 2}
    # The other change is news; what was just written is not.
    assert bench.news == [frozenset({key()}), frozenset()]


def test_endless_conflicts_are_left_to_the_next_look() -> None:
    bench = Bench()
    bench.store.before_write = [bench.store.change] * 10
    with pytest.raises(KubeConflictError, match="faster than it can be written"):
        bench.write(partitions=2)


def delete(bench: Bench) -> WriteResult:
    known = present(bench.cache.get(key()))
    return run(bench.writer.delete(known))


def test_exactly_the_version_that_is_known_is_deleted() -> None:
    bench = Bench()
    assert delete(bench) is WriteResult.WRITTEN
    assert bench.store.stored is None
    assert bench.cache.get(key()) is not None, "the watch shows when it is gone"
    assert delete(bench) is WriteResult.GONE
    assert bench.cache.get(key()) is None


def test_an_object_that_has_changed_is_not_deleted() -> None:
    bench = Bench()
    bench.store.before_write = [lambda: bench.store.change(generation=2)]
    assert delete(bench) is WriteResult.CHANGED
    assert bench.store.stored is not None
    known = present(bench.cache.get(key()))
    assert known.generation == 2, "it is looked at again"


def test_an_object_that_is_gone() -> None:
    bench = Bench()
    bench.store.stored = None
    assert bench.write(partitions=2) is WriteResult.GONE
    assert bench.cache.get(key()) is None
    assert bench.write(partitions=2) is WriteResult.GONE


def test_another_object_of_the_same_name() -> None:
    bench = Bench()
    status = KafkaTopicStatus(partitions=2)
    assert run(bench.writer.write_status(key(), "uid-before", status)) is WriteResult.GONE


class TestFinalizers:
    def test_added_and_removed_beside_others(self) -> None:
        bench = Bench(body(version="5", metadata={"finalizers": ["other"]}))
        assert run(bench.writer.add_finalizer(key(), "uid-orders")) is WriteResult.WRITTEN
        assert run(bench.writer.add_finalizer(key(), "uid-orders")) is WriteResult.UNCHANGED
        assert bench.store.stored is not None
        assert bench.store.stored["metadata"]["finalizers"] == ["other", FINALIZER]
        assert bench.remove() is WriteResult.WRITTEN
        assert bench.store.stored["metadata"]["finalizers"] == ["other"]
        assert bench.remove() is WriteResult.UNCHANGED

    def test_a_removal_is_decided_anew_if_the_object_has_changed(self) -> None:
        bench = Bench(body(version="5", metadata={"finalizers": [FINALIZER]}))
        bench.store.before_write = [lambda: bench.store.change(generation=2)]
        assert bench.remove(generation=1) is WriteResult.CHANGED
        assert bench.store.stored is not None
        assert bench.store.stored["metadata"]["finalizers"] == [FINALIZER]
        # The new generation is known by now: a plan for the old one removes nothing.
        assert bench.remove(generation=1) is WriteResult.CHANGED
        assert bench.remove(generation=2) is WriteResult.WRITTEN

    def test_one_that_came_meanwhile_is_kept(self) -> None:
        bench = Bench()
        bench.store.before_write = [lambda: bench.store.change(finalizers=["new"])]
        assert run(bench.writer.add_finalizer(key(), "uid-orders")) is WriteResult.WRITTEN
        assert bench.store.stored is not None
        assert bench.store.stored["metadata"]["finalizers"] == ["new", FINALIZER]

    def test_none_is_added_to_what_is_on_its_way_out(self) -> None:
        going = body(version="5", metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"})
        bench = Bench(going)
        assert run(bench.writer.add_finalizer(key(), "uid-orders")) is WriteResult.UNCHANGED


def test_an_object_without_its_last_finalizer_is_gone_and_stays_so() -> None:
    going = {"finalizers": [FINALIZER], "deletionTimestamp": "2026-01-01T00:00:00Z"}
    bench = Bench(body(version="5", metadata=going))
    assert bench.remove() is WriteResult.WRITTEN
    assert bench.cache.get(key()) is None
    assert bench.news == [frozenset({key()})]
    bench.cache.put(body(version="6", metadata=going))
    assert bench.cache.get(key()) is None


def test_what_has_to_be_stored_is_named_where_it_was_dropped_or_changed() -> None:
    wanted = {"a": 1, "b": {"c": "x", "d": [{"e": 1, "f": 2}, {"e": 3, "f": 4}]}, "g": [1, 2]}
    assert _differences(wanted, {**wanted, "defaulted": 1}) == (set(), set())
    stored = {"b": {"c": "y", "d": [{"e": 1}, {"e": 5}]}, "g": [1]}
    assert _differences(wanted, stored) == ({"a", "b.d.f"}, {"b.c", "b.d.e", "g"})

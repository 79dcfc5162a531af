"""Somebody else changes what Regent writes to a resource: its status, its finalizer."""

from __future__ import annotations

import copy
from typing import Any

import msgspec
import pytest

from regent.kube.work_queue import BACKOFF_MAX_S
from regent.resources.kafka_topic import FINALIZER
from tests.unit.kube.stored_objects import body
from tests.unit.kube.topic_bench import OWNED, Bench, a_topic


def statuses_written(bench: Bench) -> int:
    return sum("status" in patch for patch in bench.store.patches if isinstance(patch, dict))


def contested_writes(bench: Bench) -> float | None:
    labels = {"kind": "KafkaTopic"}
    return bench.registry.get_sample_value("regent_contested_writes_total", labels)


def a_managed_topic() -> Bench:
    stored = body(version="5", status=OWNED, metadata={"finalizers": [FINALIZER]})
    return Bench(stored, a_topic())


def overwrite(bench: Bench, **fields: Any) -> None:
    """Another client has its own idea of the status."""
    bench.stored["status"] |= fields
    bench.store.change()
    bench.cache.put(copy.deepcopy(bench.stored))


def test_two_that_overwrite_each_others_status_do_so_less_and_less(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """As two Regents of two Kafka clusters do that serve the same namespace."""
    bench = a_managed_topic()
    bench.reconcile(times=600, every_s=1, between=lambda: overwrite(bench, conditions=[]))
    assert statuses_written(bench) <= 20, "every minute at the end"
    held = [delay for delay in bench.looks if delay is not None]
    assert max(held) <= BACKOFF_MAX_S
    (record,) = [r for r in caplog.records if "again and again" in r.message]
    assert vars(record)["resource"] == "KafkaTopic shop/orders"
    assert contested_writes(bench) == statuses_written(bench) - 5, "the first ones were not counted"


def test_a_status_that_was_edited_by_hand_is_put_right_at_once() -> None:
    bench = a_managed_topic()
    bench.reconcile(times=2, every_s=1, between=lambda: overwrite(bench, conditions=[]))
    assert statuses_written(bench) == 2
    assert contested_writes(bench) == 0


def test_a_status_that_says_something_new_is_written_at_once_whoever_overwrote_the_old() -> None:
    bench = a_managed_topic()
    counts: list[int] = []

    def overwrite_and_lose_the_topic() -> None:
        counts.append(statuses_written(bench))
        overwrite(bench, conditions=[])
        if len(counts) == 100:
            bench.port.view = msgspec.structs.replace(bench.port.view, topics={})

    bench.reconcile(times=101, every_s=1, between=overwrite_and_lose_the_topic)
    assert counts[100] == counts[99] + 1


def test_a_finalizer_that_somebody_takes_off_again_and_again_is_put_back_with_growing_pauses(
    caplog: pytest.LogCaptureFixture,
) -> None:
    bench = Bench(body(version="5"))

    def strip() -> None:
        if bench.stored["metadata"].get("finalizers"):
            bench.store.change(finalizers=[])
            bench.cache.put(copy.deepcopy(bench.stored))

    bench.reconcile(times=3_600, every_s=1.0, between=strip)
    added = [patch for patch in bench.store.patches if "finalizers" in patch["metadata"]]
    assert 60 <= len(added) <= 70
    assert bench.stored["metadata"]["finalizers"] == []
    assert len([m for m in caplog.messages if "taken off again and again" in m]) == 1
    assert contested_writes(bench) == len(added) - 5, "the first ones were not counted"


def test_a_finalizer_that_somebody_takes_off_once_in_a_while_is_back_at_once() -> None:
    bench = Bench(body(version="5"))

    def strip() -> None:
        assert bench.stored["metadata"]["finalizers"] == [FINALIZER]
        bench.store.change(finalizers=[])
        bench.cache.put(copy.deepcopy(bench.stored))

    bench.reconcile(times=10, every_s=200.0, between=strip)

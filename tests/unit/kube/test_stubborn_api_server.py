"""The API server refuses what is written, stores something else, or is slow."""

from __future__ import annotations

import asyncio
import itertools
from typing import Any

import pytest

from regent.kube.errors import KubeApiError, KubeConflictError, KubeSchemaError, KubeTooLargeError
from regent.kube.settings import KubeSettings
from regent.resources.kafka_topic import FINALIZER
from tests.unit.kube.jumping_clock import elapse
from tests.unit.kube.stored_objects import body
from tests.unit.kube.topic_bench import Bench


def test_a_slow_api_server_is_not_taken_for_a_worker_that_is_stuck(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Otherwise probes and alerts call the work on custom resources stuck."""
    bench = Bench(body(version="5", adoptionPolicy="Refuse"))
    answer, ends = bench.store.request, list[float]()

    async def answer_late(method: str, path: str, **options: Any) -> dict[str, Any]:
        await elapse(29.0)
        if method == "PATCH" and len(bench.store.patches) % 2 == 0:
            bench.store.change()  # somebody else is quicker
        return await answer(method, path, **options)

    def step() -> None:
        ends.append(asyncio.get_running_loop().time())

    monkeypatch.setattr(bench.store, "request", answer_late)
    bench.on_step = step
    bench.reconcile()
    assert ends[-1] - ends[0] > KubeSettings().stuck_after_s
    assert max(later - earlier for earlier, later in itertools.pairwise(ends)) < 30


def test_that_a_status_does_not_fit_beside_the_spec_is_said_by_an_event() -> None:
    bench = Bench(body(version="5", config={"no.such.key": 1}))

    def refuse() -> None:
        raise KubeTooLargeError("etcdserver: request is too large", status=500)

    bench.store.before_write = [refuse]
    with pytest.raises(KubeTooLargeError):
        bench.reconcile()
    assert bench.events == [("Warning", "TooLarge")]


def refuse_by_policy() -> None:
    raise KubeApiError("denied request: a label is missing", status=422)


def test_that_a_policy_refuses_what_is_written_is_said_by_an_event() -> None:
    bench = Bench(body(version="5"))
    bench.store.before_write = [refuse_by_policy]
    with pytest.raises(KubeApiError, match="a label is missing"):
        bench.reconcile()
    assert bench.events == [("Warning", "WriteRefused")]
    assert "a label is missing" in bench.store.created[0]["message"]


@pytest.mark.parametrize("status", [401, 409, 429, 500, 503])
def test_api_server_causes_no_event_when_it_does_not_serve(status: int) -> None:
    bench = Bench(body(version="5"))

    def fail() -> None:
        raise KubeApiError("not now", status=status)

    bench.store.before_write = [fail]
    with pytest.raises(KubeApiError):
        bench.reconcile()
    assert bench.events == []


def test_a_resource_whose_finalizer_cannot_be_taken_off_does_not_wait_for_its_topic() -> None:
    going = {"finalizers": [FINALIZER], "deletionTimestamp": "2026-01-01T00:00:00Z"}
    bench = Bench(body(version="5", metadata=going))
    bench.store.before_write = [refuse_by_policy]
    with pytest.raises(KubeApiError):
        bench.reconcile()
    conditions = {each["type"]: each for each in bench.stored["status"]["conditions"]}
    ready = conditions["Ready"]
    assert (ready["status"], ready["reason"]) == ("False", "WriteRefused")
    assert "Regent's finalizer" in ready["message"]
    assert bench.events == [("Warning", "WriteRefused")]
    bench.reconcile()
    assert bench.stored["metadata"]["finalizers"] == []


def test_a_finalizer_that_a_webhook_puts_back_is_not_taken_for_one_that_is_gone() -> None:
    going = {"finalizers": [FINALIZER], "deletionTimestamp": "2026-01-01T00:00:00Z"}
    bench = Bench(body(version="5", metadata=going))

    def put_back(stored: dict[str, Any]) -> None:
        stored["metadata"]["finalizers"] = [FINALIZER]

    bench.store.webhook = put_back
    with pytest.raises(KubeSchemaError, match="is still there"):
        bench.reconcile()
    conditions = {each["type"]: each for each in bench.stored["status"]["conditions"]}
    assert conditions["Ready"]["reason"] == "WriteRefused"
    assert bench.events == [("Warning", "NotStoredAsWritten")]
    bench.store.webhook = lambda stored: None
    bench.reconcile()
    assert bench.stored["metadata"]["finalizers"] == []


def test_a_conflict_with_nobody_is_no_hot_loop() -> None:
    """A webhook may answer 409. Regent looks at a changed resource at once."""
    going = {"finalizers": [FINALIZER], "deletionTimestamp": "2026-01-01T00:00:00Z"}
    bench = Bench(body(version="5", metadata=going))

    def conflict() -> None:
        raise KubeConflictError("the object has been modified", status=409)

    bench.store.before_write = [conflict]
    with pytest.raises(KubeConflictError):
        bench.reconcile()
    bench.store.before_write = [bench.store.change]
    bench.reconcile(times=2)
    assert bench.looks[0] == 0.0
    assert bench.stored["metadata"]["finalizers"] == []


def test_a_webhook_that_takes_the_finalizer_off_is_no_hot_loop() -> None:
    bench = Bench(body(version="5"))

    def strip(stored: dict[str, Any]) -> None:
        stored["metadata"]["finalizers"] = []

    bench.store.webhook = strip
    with pytest.raises(KubeSchemaError, match=r"finalizer .* is not there.* admission webhook"):
        bench.reconcile()
    assert len(bench.store.patches) == 1
    assert bench.port.commands == []
    assert bench.events == [("Warning", "NotStoredAsWritten")]


def test_a_webhook_that_changes_the_intent_is_no_hot_loop() -> None:
    bench = Bench(body(version="5", adoptionPolicy="Refuse", metadata={"finalizers": [FINALIZER]}))

    def blur(stored: dict[str, Any]) -> None:
        stored["status"]["intendedTopicId"] = "***"

    bench.store.webhook = blur
    with pytest.raises(KubeSchemaError, match=r"status\.intendedTopicId .* admission webhook"):
        bench.reconcile()
    assert len(bench.store.patches) == 1
    assert bench.port.commands == []


def test_a_finalizer_that_comes_back_to_a_resource_without_need_of_it_is_noticed() -> None:
    """Nobody deletes the resource, and it needs no finalizer."""
    bench = Bench(body(version="5", deletionPolicy="Retain", metadata={"finalizers": [FINALIZER]}))

    def put_back(stored: dict[str, Any]) -> None:
        stored["metadata"]["finalizers"] = ["a.b/c", FINALIZER]

    bench.store.webhook = put_back
    with pytest.raises(KubeSchemaError, match="is still there"):
        bench.reconcile(times=3, every_s=60)

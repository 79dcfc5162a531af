"""The parts that serve resources of any kind, with a kind that is no topic."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pytest

from regent.controller.commands import ResourceCommand
from regent.controller.view import ClusterView
from regent.kube.claim_index import ClaimIndex
from regent.kube.event_recorder import EventRecorder
from regent.kube.memory import ObjectMemory
from regent.kube.object_cache import CachedObject, ObjectCache, ObjectKey
from regent.kube.reconciler import Reconciled, Reconciler, ReconcilerParts
from regent.kube.settings import KubeSettings
from regent.kube.status_writer import StatusWriter
from regent.reconcile.kinds import KindDescriptor
from regent.reconcile.plan import FinalizerAction, Plan, PlannedEvent
from regent.reconcile.topics.kind import KAFKA_TOPIC
from regent.reconcile.topics.planning import plan_topic
from regent.resources.base import ApiModel, ObjectMeta
from regent.resources.conditions import Condition
from regent.resources.kind import ResourceKind
from tests.unit.kube.jumping_clock import run
from tests.unit.kube.test_object_cache import body
from tests.unit.kube.test_status_writer import Store
from tests.unit.reconcile.requests import request

FINALIZER = "kafka.regent.dev/drain"


class DrainStatus(ApiModel):
    observed_generation: int | None = None
    conditions: tuple[Condition, ...] = ()
    drained: tuple[int, ...] = ()


class Drain(ApiModel):
    metadata: ObjectMeta
    spec: dict[str, Any]
    status: DrainStatus = DrainStatus()


def brokers_of(body: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(map(str, body["spec"]["brokers"]))


def claim_of(body: Mapping[str, Any]) -> str | None:
    return None if body["spec"].get("observes") else str(body["metadata"]["uid"])


DRAIN: KindDescriptor[Drain, str] = KindDescriptor(
    kind=ResourceKind(kind="Drain", plural="drains", description=""),
    spec_fields=frozenset({"brokers"}),
    status_fields=frozenset(),
    parse=Drain.model_validate,
    finalizer=FINALIZER,
    subjects=brokers_of,
    claim=claim_of,
)


def drain(name: str, *brokers: int, version: str = "1", **spec: Any) -> dict[str, Any]:
    made = body(name, version)
    return {**made, "spec": {"brokers": list(brokers), **spec}}


def key(name: str) -> ObjectKey:
    return ObjectKey("Drain", "shop", name)


def test_an_object_that_declares_several_things_is_news_for_the_rivals_of_each() -> None:
    index: ClaimIndex[Drain, str] = ClaimIndex(DRAIN)
    cache = ObjectCache("Drain", index)
    cache.put(drain("a", 1))
    cache.put(drain("b", 2))
    assert cache.put(drain("c", 1, 2)) == {key("a"), key("b"), key("c")}
    assert index.claims("1") == ("uid-a", "uid-c")
    assert cache.put(drain("c", 2, version="2")) == {key("a"), key("b"), key("c")}
    assert (index.keys("1"), index.keys("2")) == ((key("a"),), (key("b"), key("c")))
    assert cache.put(drain("c", 2, version="3", observes=True)) == {key("b"), key("c")}
    assert index.claims("2") == ("uid-b",)
    assert cache.remove(key("b"), uid="uid-b") == {key("b"), key("c")}


def test_an_object_that_cannot_be_read_declares_nothing_and_the_others_are_served(
    caplog: pytest.LogCaptureFixture,
) -> None:
    index: ClaimIndex[Drain, str] = ClaimIndex(DRAIN)
    cache = ObjectCache("Drain", index)
    cache.put(drain("odd", 1))
    odd = {**drain("odd", version="2"), "spec": {}}
    news = cache.replace_all([odd, drain("a", 1)], listed_version="2")
    assert key("a") in news
    assert index.claims("1") == ("uid-a",)
    (record,) = caplog.records
    assert record.__dict__["resource"] == "Drain shop/odd"


def test_objects_of_two_kinds_with_one_name_are_two() -> None:
    assert ObjectKey("Drain", "shop", "a") != ObjectKey("KafkaTopic", "shop", "a")


@dataclass(frozen=True)
class DrainRequest:
    resource: Drain


class Drains:
    """Drains at once whatever is declared, holding a finalizer meanwhile."""

    def remember(self, known: CachedObject, *, at: float) -> ObjectMemory[DrainStatus]:
        return ObjectMemory(
            uid=known.uid,
            generation=known.generation,
            seen_at=at,
            is_significant=lambda before, after: before != after,
        )

    def request(self, known: CachedObject, memory: ObjectMemory[DrainStatus]) -> DrainRequest:
        return DrainRequest(DRAIN.parse(known.body))

    def plan(self, request: DrainRequest) -> Plan[DrainStatus]:
        holds = FINALIZER in request.resource.metadata.finalizers
        return Plan(
            status=DrainStatus(observed_generation=1, drained=request.resource.spec["brokers"]),
            finalizer=FinalizerAction.LEAVE if holds else FinalizerAction.ADD,
        )

    async def send(
        self,
        request: DrainRequest,
        commands: Sequence[ResourceCommand],
        memory: ObjectMemory[DrainStatus],
        is_wanted: Callable[[], bool],
    ) -> tuple[PlannedEvent, ...]:
        raise AssertionError("no plan here has commands")

    def status_of(self, known: CachedObject) -> DrainStatus:
        return DRAIN.parse(known.body).status

    def stored(
        self, status: DrainStatus, *, over: DrainStatus, memory: ObjectMemory[DrainStatus]
    ) -> tuple[PlannedEvent, ...]:
        return (PlannedEvent("Drained", f"{over.drained} then {status.drained}"),)


def test_one_reconciler_serves_a_kind_that_knows_no_topics() -> None:
    async def reconcile() -> Store:
        store = Store(drain("a", 1, 2))
        index: ClaimIndex[Drain, str] = ClaimIndex(DRAIN)
        cache = ObjectCache("Drain", index)
        cache.put(drain("a", 1, 2))
        recorder = EventRecorder(
            store, now=lambda: datetime(2026, 1, 1, tzinfo=UTC), instance="pod"
        )
        reconciler = Reconciler(
            ReconcilerParts(
                cache=cache,
                writer=StatusWriter(store, DRAIN, cache, on_news=lambda _: None),
                recorder=recorder,
                settings=KubeSettings(),
                view=ClusterView,
            ),
            Drains(),
        )
        assert await reconciler.reconcile(key("a")) == Reconciled(None)
        assert len(store.patches) == 2
        assert await reconciler.reconcile(key("a")) == Reconciled(None)
        assert len(store.patches) == 2, "nothing has changed"
        return store

    stored = run(reconcile()).stored
    assert stored is not None
    assert stored["metadata"]["finalizers"] == [FINALIZER]
    assert stored["status"] == {"observedGeneration": 1, "drained": [1, 2]}


def test_a_status_has_the_conditions_of_its_kind() -> None:
    plan = plan_topic(request())
    status = plan.status or plan_topic(request(config={})).status
    assert status is not None
    assert tuple(condition.type for condition in status.conditions) == KAFKA_TOPIC.kind.conditions

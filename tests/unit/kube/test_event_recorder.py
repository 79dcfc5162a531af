"""Kubernetes Events: what is sent, what is not told twice, and what waits for resources."""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import pytest
from aiohttp import web

from regent.kube.client import KubeClient
from regent.kube.errors import KubeError
from regent.kube.event_recorder import PATIENCE_S, EventRecorder
from regent.kube.object_cache import CachedObject
from regent.kube.waiting import cancel
from regent.model.entry_budget import ENTRIES
from regent.reconcile.plan import PlannedEvent
from tests.support.present import present
from tests.unit.kube.jumping_clock import elapse, jumping, run
from tests.unit.kube.small_server import Credentials, Server, serving
from tests.unit.kube.stored_objects import Store, body, key, topic_cache

NEWS = PlannedEvent("Created", "made")
WARNING = PlannedEvent("Bad", "broken", is_warning=True)


def subject(name: str = "orders") -> CachedObject:
    cache, _ = topic_cache()
    cache.put(body(name, version="5"))
    return present(cache.get(key(name)))


@dataclass
class Bench:
    """A recorder beside resources that may wait for their turn."""

    store: Store = field(default_factory=lambda: Store(None))
    is_busy: bool = False

    @contextlib.asynccontextmanager
    async def recording(self) -> AsyncIterator[EventRecorder]:
        recorder = EventRecorder(
            self.store,
            now=lambda: datetime(2026, 1, 1, tzinfo=UTC),
            instance="pod-1",
            is_busy=lambda: self.is_busy,
        )
        sending = asyncio.create_task(recorder.run())
        try:
            yield recorder
        finally:
            sending.cancel()

    @property
    def sent(self) -> list[str]:
        return [event["reason"] for event in self.store.created]


def record(*events: PlannedEvent, times: int = 1, name: str = "orders") -> Store:
    """Record Events about one object, and have them sent."""
    bench = Bench()

    async def scenario() -> None:
        async with bench.recording() as recorder:
            known = subject(name)
            for _ in range(times):
                for event in events:
                    recorder.record(known, event)
            await recorder.flush()

    run(scenario())
    return bench.store


class TestWhatIsSent:
    def test_the_same_one_is_told_once(self) -> None:
        store = record(PlannedEvent("A", "x"), PlannedEvent("A", "y"), times=3)
        assert [event["message"] for event in store.created] == ["x", "y"]

    def test_what_happened_again_is_told_again(self) -> None:
        store = record(PlannedEvent("A", "x", is_occurrence=True), times=3)
        assert len(store.created) == 3

    @pytest.mark.parametrize("end", ["t", "-", ".", ".-."])
    def test_its_name_is_one_however_long_that_of_the_resource_is(self, end: str) -> None:
        (event,) = record(
            PlannedEvent("A", "x"), name=f"{'t' * 200}"[: -len(end)] + end + "t"
        ).created
        assert re.fullmatch(
            r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*",
            event["metadata"]["name"],
        )

    def test_what_the_log_is_to_say_it_says_once(self, caplog: pytest.LogCaptureFixture) -> None:
        caplog.set_level("INFO", "regent.kube.event_recorder")
        record(PlannedEvent("PlanOutdated", "it does not fit", is_logged=True), NEWS, times=3)
        (entry,) = caplog.records
        assert entry.__dict__["resource"] == "KafkaTopic shop/orders"
        assert entry.__dict__["reason"] == "PlanOutdated"
        assert entry.__dict__["event"] == "it does not fit"

    def test_what_it_says(self) -> None:
        (event,) = record(PlannedEvent("Bad", "x" * 2000, is_warning=True)).created
        assert event["type"] == "Warning"
        assert event["reason"] == "Bad"
        assert len(event["message"]) == 1024
        assert event["involvedObject"]["uid"] == "uid-orders"
        assert event["involvedObject"]["kind"] == "KafkaTopic"
        assert event["metadata"]["namespace"] == "shop"
        assert event["firstTimestamp"] == "2026-01-01T00:00:00Z"
        assert event["reportingInstance"] == "pod-1"


class _Refusing(Store):
    async def create(
        self, path: str, body: Mapping[str, Any], *, dry_run: bool = False
    ) -> dict[str, Any]:
        raise KubeError("the API server is down")


@jumping
async def test_events_that_nobody_takes_in_time_do_not_flood_the_log(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("regent.kube.event_recorder._QUEUE_SIZE_MAX", 50)
    bench = Bench(store=_Refusing(None))
    async with bench.recording() as recorder:
        for number in range(100):
            recorder.record(subject(f"orders-{number}"), WARNING)
        await recorder.flush()
    said = [record.message for record in caplog.records]
    # Each has entries of its own: neither hides the other.
    assert said.count("An Event is dropped, too many are waiting") == ENTRIES
    assert said.count("An Event cannot be recorded") == ENTRIES


def refusal(code: int, **details: Any) -> web.Response:
    status = {"kind": "Status", "metadata": {}, "message": "no", "code": code, "details": details}
    return web.json_response(status, status=code)


async def test_a_namespace_that_is_going_takes_no_events_and_nobody_is_warned(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO", "regent.kube.event_recorder")
    server = Server()
    ending = {"reason": "NamespaceTerminating", "field": "metadata.namespace"}
    server.answers = [
        refusal(403, name="orders.1", kind="events", causes=[ending]),
        refusal(403, name="orders.1", kind="events", causes=[ending]),
        refusal(404, name="shop", kind="namespaces"),
        refusal(403, kind="events"),
    ]
    async with serving(server) as server.url:
        client = KubeClient(
            max_connections=1, request_timeout_s=60, credentials=Credentials(server)
        )
        async with client:
            recorder = EventRecorder(client, now=lambda: datetime.now(UTC), instance="pod-1")
            sending = asyncio.create_task(recorder.run())
            for number in range(4):
                recorder.record(subject(f"orders-{number}"), WARNING)
            await recorder.flush()
            await cancel((sending,))
    said = [(entry.levelname, entry.message) for entry in caplog.records]
    assert said == [
        ("INFO", "A namespace is being deleted and takes no Events any more"),
        ("WARNING", "An Event cannot be recorded"),
    ]
    assert caplog.records[0].__dict__["namespace"] == "shop"


class TestWhileResourcesWait:
    @jumping
    async def test_news_waits_and_a_warning_does_not(self) -> None:
        bench = Bench(is_busy=True)
        async with bench.recording() as recorder:
            recorder.record(subject(), NEWS)
            recorder.record(subject(), WARNING)
            await elapse(PATIENCE_S - 1)
            assert bench.sent == ["Bad"]
            bench.is_busy = False
            recorder.wake()
            await elapse(0.1)
            assert bench.sent == ["Bad", "Created"]

    @jumping
    async def test_news_does_not_wait_for_ever(self) -> None:
        bench = Bench(is_busy=True)
        async with bench.recording() as recorder:
            recorder.record(subject(), NEWS)
            await elapse(PATIENCE_S / 2)
            recorder.record(subject("other"), PlannedEvent("Later", "made, too"))
            await elapse(PATIENCE_S / 2 + 1)
            assert bench.sent == ["Created"]

    @jumping
    async def test_too_much_news_does_not_wait(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("regent.kube.event_recorder._PATIENT_MAX", 2)
        bench = Bench(is_busy=True)
        async with bench.recording() as recorder:
            for number in range(5):
                recorder.record(subject(), PlannedEvent(f"N{number}", "made"))
            await elapse(0.1)
            assert bench.sent == ["N0", "N1", "N2"]

    @jumping
    async def test_at_the_end_nothing_waits(self) -> None:
        bench = Bench(is_busy=True)
        async with bench.recording() as recorder:
            recorder.record(subject(), NEWS)
            await recorder.finish()
            assert bench.sent == ["Created"]

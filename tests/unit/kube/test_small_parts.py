"""Merge patches, what is known of configurations, memory, workers, credentials, handlers."""

from __future__ import annotations

import asyncio
import threading
import uuid
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry

from regent.admin.commands import (
    Accepted,
    AlterTopicConfig,
    CreateTopic,
    DeleteTopic,
    Reason,
    Rejected,
)
from regent.controller.view import ClusterView, TopicView
from regent.kube import login as login_module
from regent.kube import service_account
from regent.kube.errors import KubeApiError, KubeLoginError
from regent.kube.handlers import KOPF_FINALIZER, build_settings
from regent.kube.login import login
from regent.kube.merge_patch import merge_patch
from regent.kube.metrics import ResourceMetrics
from regent.kube.object_cache import ObjectKey
from regent.kube.reconciler import Reconciled
from regent.kube.settings import KubeSettings
from regent.kube.topic_configs import ConfigVersion, TopicConfigs
from regent.kube.topic_memory import TopicMemory
from regent.kube.work_queue import WorkQueue
from regent.kube.worker import work
from regent.model.entry_budget import EntryBudget
from regent.reconcile.topics.request import TopicIdentity
from regent.resources.kafka_topic import FINALIZER
from regent.resources.kafka_topic_status import ForeignDeletion, KafkaTopicStatus, Ownership
from tests.unit.kube.jumping_clock import elapse, jumping

AT = 1000.0
ID, NEXT_ID = uuid.UUID(int=1), uuid.UUID(int=2)
FOUND = ForeignDeletion(detected_at="2026-01-01T00:00:00Z")

_values = st.recursive(
    st.integers() | st.text(max_size=3) | st.booleans() | st.lists(st.integers(), max_size=2),
    lambda children: st.dictionaries(st.text(max_size=3), children, max_size=3),
    max_leaves=8,
)
_documents = st.dictionaries(st.text(max_size=3), _values, max_size=4)


def _apply(target: Any, patch: Any) -> Any:
    """RFC 7386, as it says."""
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = _apply(result.get(key), value)
    return result


class TestMergePatch:
    @given(before=_documents, after=_documents)
    def test_it_leads_from_one_to_the_other(self, before: Any, after: Any) -> None:
        assert _apply(before, merge_patch(before, after)) == after


class TestTopicConfigs:
    def test_a_reading_that_was_overtaken_is_not(self) -> None:
        configs = TopicConfigs()
        mark = configs.clock
        configs.invalidate("t")
        configs.put("t", {"a": "1"}, as_of=mark)
        configs.put("other", {}, as_of=mark)
        assert configs.get("t") is None
        assert configs.get("other") == {}
        mark = configs.clock
        configs.invalidate_all()
        configs.put("other", {}, as_of=mark)
        assert configs.get("other") is None

    def test_a_change_of_something_else_of_the_topic_leaves_it_known(self) -> None:
        configs = TopicConfigs()
        configs.see("t", ConfigVersion(czxid=7, changes=0))
        configs.put("t", {"a": "1"}, as_of=configs.clock)
        began = configs.clock
        configs.see("t", ConfigVersion(czxid=7, changes=0))
        assert configs.get("t") == {"a": "1"}
        configs.see("t", ConfigVersion(czxid=7, changes=1))
        assert configs.get("t") is None
        configs.put("t", {"a": "1"}, as_of=began)
        assert configs.get("t") is None, "the reading began before the change"
        configs.put("t", {"a": "2"}, as_of=configs.clock)
        configs.see("t", ConfigVersion(czxid=9, changes=1))
        assert configs.get("t") is None, "it is another topic"

    def test_where_nobody_knows_whether_it_has_changed_it_may_have(self) -> None:
        configs = TopicConfigs()
        for _ in range(2):
            configs.put("t", {"a": "1"}, as_of=configs.clock)
            configs.see("t", None)
            assert configs.get("t") is None

    def test_everything_may_have_changed(self) -> None:
        configs = TopicConfigs()
        configs.see("t", ConfigVersion(czxid=7, changes=0))
        configs.invalidate_all()  # in the next term changes are counted from 0 again
        configs.put("t", {"a": "1"}, as_of=configs.clock)
        configs.see("t", ConfigVersion(czxid=7, changes=0))
        assert configs.get("t") is None

    def test_an_own_change_is_known(self) -> None:
        configs = TopicConfigs()
        configs.put("t", {"a": "1", "b": "2"}, as_of=0)
        configs.apply(AlterTopicConfig("t", {"c": "3"}, ("a",)))
        configs.apply(AlterTopicConfig("unknown", {"c": "3"}))
        assert configs.get("t") == {"b": "2", "c": "3"}
        assert configs.get("unknown") is None


class TestTopicMemory:
    def _note(self, memory: TopicMemory, command: Any, outcome: Any) -> None:
        memory.note(
            command,
            outcome,
            view=ClusterView(controller_epoch=1),
            at=AT,
            settings=KubeSettings(),
            jitter=lambda: 1.0,
            new_topic_id=lambda: NEXT_ID,
            status=KafkaTopicStatus(last_foreign_deletion=FOUND),
        )

    def test_how_long_an_answer_counts(self) -> None:
        memory = TopicMemory(uid="u", generation=1, seen_at=AT, spare_topic_id=ID)
        for outcome, delay_s in (
            (Accepted(), 10.0),
            (Rejected(Reason.INVALID_CONFIG, ""), 600.0),
            (Rejected(Reason.CONCURRENT_CHANGE, ""), 1.0),
            (Rejected(Reason.CONCURRENT_CHANGE, ""), 2.0),
            (Rejected(Reason.CONCURRENT_CHANGE, ""), 4.0),
        ):
            self._note(memory, DeleteTopic("t"), outcome)
            (attempt,) = memory.attempts
            if attempt.count > 1 or isinstance(outcome, Accepted):
                assert attempt.retry_at - AT == delay_s

    def test_another_generation_begins_anew(self) -> None:
        memory = TopicMemory(uid="u", generation=1, seen_at=AT, spare_topic_id=ID)
        self._note(memory, DeleteTopic("t"), Rejected(Reason.INVALID_CONFIG, ""))
        later = AT + 5
        memory.see(1, at=later)
        assert (memory.seen_at, len(memory.attempts)) == (AT, 1)
        memory.see(2, at=later)
        assert (memory.seen_at, memory.attempts) == (later, [])

    @pytest.mark.parametrize("command", [CreateTopic("t", 1), DeleteTopic("t")])
    def test_what_brings_a_topic_to_life_or_death_outlives_a_change(self, command: Any) -> None:
        memory = TopicMemory(uid="u", generation=1, seen_at=AT, spare_topic_id=ID)
        self._note(memory, command, Accepted())
        self._note(memory, AlterTopicConfig("t", {"a": "1"}), Accepted())
        memory.see(2, at=AT)
        assert [attempt.command for attempt in memory.attempts] == [command]
        memory.see(2, at=AT + 10)
        assert memory.attempts == []

    def test_a_creation_is_remembered_until_the_status_tells_of_it(self) -> None:
        memory = TopicMemory(uid="u", generation=1, seen_at=AT, spare_topic_id=ID)
        command = CreateTopic("t", 1, topic_id=ID)
        self._note(memory, command, Rejected(Reason.CONCURRENT_CHANGE, ""))
        assert (memory.created, memory.spare_topic_id) == (None, ID)
        self._note(memory, command, Accepted())
        assert memory.created == command
        assert memory.spare_topic_id == NEXT_ID
        for ownership, loss in (None, None), (None, FOUND), (Ownership.CREATING, FOUND):
            memory.settle(KafkaTopicStatus(ownership=ownership, last_foreign_deletion=loss))
            assert memory.created == command
        memory.settle(KafkaTopicStatus(ownership=Ownership.CREATED))
        assert memory.created is None

    def test_a_creation_is_remembered_until_the_status_tells_of_the_loss(self) -> None:
        memory = TopicMemory(uid="u", generation=1, seen_at=AT, spare_topic_id=ID)
        self._note(memory, CreateTopic("t", 1, topic_id=ID), Accepted())
        loss = FOUND.model_copy(update={"detected_at": "2026-01-02T00:00:00Z"})
        memory.settle(KafkaTopicStatus(last_foreign_deletion=loss))
        assert memory.created is None

    def test_the_topic_that_was_created_is_known_once_it_shows(self) -> None:
        memory = TopicMemory(uid="u", generation=1, seen_at=AT, spare_topic_id=ID)
        shown, other = TopicView("t", ID, (), czxid=0x2A), TopicView("t", NEXT_ID, (), czxid=0x2B)

        def known(*views: TopicView | None) -> TopicIdentity | None:
            for each in views:
                memory.recognise(each)
            return memory.created_as

        assert known(shown) is None
        self._note(memory, CreateTopic("t", 1, topic_id=ID), Accepted())
        assert known(None, other) is None
        assert known(shown, None, other) == TopicIdentity.of(shown)
        self._note(memory, CreateTopic("t", 1, topic_id=NEXT_ID), Accepted())
        assert known(shown, other) == TopicIdentity.of(other)
        memory.settle(KafkaTopicStatus(ownership=Ownership.CREATED))
        assert known(other) is None

    def test_a_topic_without_an_id_is_the_one_that_was_created_with_one(self) -> None:
        """Below inter.broker.protocol.version 2.8 the controller gives topics no ids."""
        memory = TopicMemory(uid="u", generation=1, seen_at=AT, spare_topic_id=ID)
        shown = TopicView("t", None, (), czxid=0x2A)
        self._note(memory, CreateTopic("t", 1, topic_id=ID), Accepted())
        memory.recognise(shown)
        assert memory.created_as == TopicIdentity.of(shown)


def working(
    queue: WorkQueue[ObjectKey], reconcile: Callable[[ObjectKey], Awaitable[Reconciled]]
) -> asyncio.Task[None]:
    """A worker that has begun."""
    metrics = ResourceMetrics(CollectorRegistry())
    return asyncio.create_task(work(queue, reconcile, metrics=metrics, entries=EntryBudget()))


class TestWorker:
    @jumping
    async def test_what_has_kept_the_loop_busy_rests(self) -> None:
        looks: list[float] = []

        async def reconcile(_: ObjectKey) -> Reconciled:
            looks.append(asyncio.get_running_loop().time() - 1000)
            return Reconciled(0.0 if len(looks) == 1 else None, cost_s=0.5)

        queue: WorkQueue[ObjectKey] = WorkQueue(jitter=lambda: 1.0)
        queue.add(ObjectKey("KafkaTopic", "shop", "large"))
        worker = working(queue, reconcile)
        await elapse(100)
        assert looks == [0, 2]
        worker.cancel()

    @jumping
    async def test_errors_are_retried_and_stop_nobody(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        looks: list[tuple[str, float]] = []

        async def reconcile(key: ObjectKey) -> Reconciled:
            looks.append((key.name, asyncio.get_running_loop().time() - 1000))
            seen = [name for name, _ in looks].count(key.name)
            if key.name == "busy" and seen == 1:
                raise KubeApiError("too many requests", status=429, retry_after_s=9)
            if key.name == "broken" and seen == 1:
                raise ZeroDivisionError
            return Reconciled(50.0 if key.name == "again" and seen == 1 else None)

        queue: WorkQueue[ObjectKey] = WorkQueue(jitter=lambda: 1.0)
        for name in ("busy", "broken", "again", "fine"):
            queue.add(ObjectKey("KafkaTopic", "shop", name))
        worker = working(queue, reconcile)
        await elapse(200)
        assert queue.is_idle
        worker.cancel()
        assert looks == [
            ("busy", 0),
            ("broken", 0),
            ("again", 0),
            ("fine", 0),
            ("broken", 0.5),
            ("busy", 9),
            ("again", 50),
        ]
        requeued = caplog.records[0]
        assert requeued.getMessage() == "A resource is requeued, the API server did not serve"
        assert vars(requeued) | {
            "resource": "KafkaTopic shop/busy",
            "delay_s": 9.0,
            "error": "too many requests",
        } == vars(requeued)
        assert "ZeroDivisionError" in caplog.text


class TestOwnNamespace:
    def test_it_is_that_of_the_pod_or_the_default_one(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(service_account, "SERVICE_ACCOUNT", tmp_path)
        assert KubeSettings().lease == "default/regent"
        (tmp_path / "namespace").write_text("kafka\n")
        assert KubeSettings().lease == "kafka/regent"
        assert KubeSettings(lease_namespace="web", lease_name="east").lease == "web/east"


class TestLogin:
    @pytest.fixture
    def account(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        monkeypatch.setattr(login_module, "SERVICE_ACCOUNT", tmp_path)
        (tmp_path / "token").write_text("first\n")
        (tmp_path / "ca.crt").write_text("certificate")
        return tmp_path

    @pytest.mark.parametrize(
        ("host", "server"), [("10.0.0.1", "https://10.0.0.1:6443"), ("fd00::1", "https://[fd00::1]:6443")]
    )  # fmt: skip
    async def test_in_a_pod(
        self, account: Path, monkeypatch: pytest.MonkeyPatch, host: str, server: str
    ) -> None:
        monkeypatch.setenv("KUBERNETES_SERVICE_HOST", host)
        monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "6443")
        info = await login()
        assert (info.server, info.token) == (server, "first")
        assert info.ca_path == str(account / "ca.crt")
        # The kubelet renews the token in place.
        (account / "token").write_text("second")
        assert (await login()).token == "second"

    @pytest.mark.parametrize("content", [b"", b" \n", b"\x00\xff"], ids=repr)
    async def test_a_token_that_is_none(
        self, account: Path, monkeypatch: pytest.MonkeyPatch, content: bytes
    ) -> None:
        """Requests without one would be refused as forbidden, not as unauthorized, for a minute."""
        monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
        (account / "token").write_bytes(content)
        with pytest.raises(KubeLoginError, match="token of the service account is unreadable: "):
            await login()

    def test_a_plugin_that_hangs_keeps_no_process_from_ending(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        over, ended = threading.Event(), threading.Event()

        def hang() -> None:
            over.wait()
            ended.set()

        monkeypatch.setattr(login_module, "_login", hang)

        async def give_up() -> None:
            async with asyncio.timeout(0.05):
                await login()

        with pytest.raises(TimeoutError):
            asyncio.run(give_up())  # it would wait here for a thread of the loop's own
        assert not ended.is_set()
        over.set()

    async def test_nowhere(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
        monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
        with pytest.raises(KubeLoginError, match="set KUBECONFIG"):
            await login()

    @pytest.mark.parametrize(
        "content", [b"\x00\xff", b"a: [", b"- 1", b"clusters: 5", b""], ids=repr
    )
    async def test_a_kubeconfig_that_is_none(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, content: bytes
    ) -> None:
        """Somebody may just be writing it, and it is read once a minute."""
        monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
        (tmp_path / "config").write_bytes(content)
        monkeypatch.setenv("KUBECONFIG", str(tmp_path / "config"))
        with pytest.raises(KubeLoginError, match=r"no usable kubeconfig: .+; set KUBECONFIG"):
            await login()

    async def test_kubeconfig(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
        config = tmp_path / "config"
        config.write_text(
            "{apiVersion: v1, kind: Config, current-context: c, "
            "clusters: [{name: k, cluster: {server: 'https://example:6443'}}], "
            "contexts: [{name: c, context: {cluster: k, user: u}}], "
            "users: [{name: u, user: {token: secret}}]}"
        )
        monkeypatch.setenv("KUBECONFIG", str(config))
        info = await login()
        assert info.server == "https://example:6443"
        assert info.as_http_headers() == {"Authorization": "Bearer secret"}


class TestHandlers:
    def test_kopf_gets_a_finalizer_of_its_own(self) -> None:
        """kopf removes its finalizer wherever no handler of its needs it."""
        settings = build_settings(page_size=7)
        assert settings.watching.chunk_size == 7
        assert settings.persistence.finalizer == KOPF_FINALIZER != FINALIZER
        assert settings.peering.standalone
        assert settings.scanning.disabled
        assert not settings.posting.enabled

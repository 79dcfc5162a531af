"""A real kube-apiserver for the session, a namespace and a running operator for each test."""

from __future__ import annotations

import asyncio
import gc
import itertools
import warnings
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from regent.kube.health import KubeHealth
from regent.kube.metrics import ResourceMetrics
from regent.kube.operator import KubeOperator, run_kube
from regent.kube.rebalance_planning import PlanningTools
from regent.kube.settings import KubeSettings
from regent.kube.side import KubernetesSide
from regent.kube.waiting import cancel
from regent.reconcile.topics.kind import KAFKA_TOPIC
from regent.resources.crd import RESOURCES
from regent.resources.resource_status import UNOBSERVED
from regent.runtime.ports import ControllerPort
from sandbox import KubernetesApi, wait_until_async
from sandbox.definitions import apply_definitions
from sandbox.waiting import DEADLINE_S
from tests.support.definitions import install_definitions
from tests.support.kubernetes_client import KubernetesClient
from tests.support.kubernetes_proxy import KubernetesProxy
from tests.support.live_controller import LiveController
from tests.support.simulated_cluster import SimulatedCluster

ROOT = Path(__file__).parents[3]


_numbers = itertools.count(1)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Closing a client session does not wait for its TLS connections to say good-bye
    (aio-libs/aiohttp#1925), and the test's loop may end before they have."""
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent):
            item.add_marker(pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning"))


@pytest.fixture(scope="package", autouse=True)
def _leftovers_are_collected_here() -> Iterator[None]:
    yield
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


@pytest.fixture(scope="package")
def api() -> Iterator[KubernetesApi]:
    """An API server with Regent's CRDs."""
    with KubernetesApi(users={"regent": []}) as server:
        apply_definitions(server.kubectl, ROOT / "crds")
        yield server


@pytest.fixture(scope="package")
def changing_api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KubernetesApi]:
    """An API server with Regent's CRDs, for tests that change the CRDs or the whole server, and
    restore both."""
    state = tmp_path_factory.mktemp("changing") / "kubernetes"
    with KubernetesApi(users={"regent": []}, state=state) as server:
        install_definitions(server)
        yield server


class Namespace:
    """A namespace of the test's own, and what people do in it."""

    def __init__(self, api: KubernetesApi, name: str) -> None:
        self.api = api
        self.name = name
        self.client = KubernetesClient(api)
        self.topics = KAFKA_TOPIC.kind.collection_path(name)

    def kubectl(self, *arguments: str | Path, stdin: str | None = None, user: str = "admin") -> str:
        return self.api.kubectl("-n", self.name, *arguments, stdin=stdin, user=user)

    def apply(self, *resources: dict[str, Any]) -> None:
        """Apply resources of Regent's, on the side of the server."""
        for resource in resources:
            self.client.apply(resource, namespace=self.name)

    def get(self, name: str) -> dict[str, Any]:
        return self.client.get(f"{self.topics}/{name}")

    def all(self) -> dict[str, dict[str, Any]]:
        return {item["metadata"]["name"]: item for item in self.client.items(self.topics)}

    def delete(self, name: str) -> None:
        self.client.delete(f"{self.topics}/{name}")

    async def delete_and_wait(self, name: str) -> None:
        self.delete(name)
        await self.wait_gone(name)

    def patch(self, name: str, **spec: Any) -> None:
        self.client.patch(f"{self.topics}/{name}", {"spec": spec})

    def patch_status(self, name: str, status: dict[str, Any] | None) -> None:
        """Merge a change into the status of a KafkaTopic; None removes the status."""
        self.client.patch(f"{self.topics}/{name}/status", {"status": status})

    def events(self, name: str) -> list[tuple[str, str]]:
        return [
            (item["type"], item["reason"])
            for item in self.client.items(f"/api/v1/namespaces/{self.name}/events")
            if item["involvedObject"]["name"] == name
        ]

    async def wait_event(self, name: str, type_: str, reason: str) -> list[tuple[str, str]]:
        """Wait for an Event, which is sent after the status that it belongs to; all of them."""

        async def look() -> list[tuple[str, str]]:
            return await asyncio.to_thread(self.events, name)

        return await wait_until_async(
            look,
            until=lambda events: (type_, reason) in events,
            describe=f"the Event {reason} of {name}",
        )

    async def wait(
        self,
        name: str,
        until: Callable[[dict[str, Any]], bool],
        *,
        describe: str,
        timeout_s: float = 120,
    ) -> dict[str, Any]:
        """Wait for a KafkaTopic to be as a test wants it; its body."""

        async def look() -> dict[str, Any]:
            return await asyncio.to_thread(self.get, name)

        return await wait_until_async(look, until=until, describe=describe, timeout_s=timeout_s)

    async def wait_condition(
        self, name: str, type_: str, status: str, reason: str | None = None
    ) -> dict[str, Any]:
        """Wait for a condition of the current generation."""

        def holds(body: dict[str, Any]) -> bool:
            found = condition(body, type_)
            return (
                found.get("status") == status
                and reason in (None, found.get("reason"))
                and body["status"].get("observedGeneration") == body["metadata"]["generation"]
            )

        return await self.wait(name, holds, describe=f"{type_}={status} ({reason}) on {name}")

    async def wait_gone(self, name: str) -> None:
        """Wait until a KafkaTopic does not exist any more."""

        async def present() -> bool:
            return name in await asyncio.to_thread(self.all)

        await wait_until_async(
            present, until=lambda there: not there, describe=f"{name} to be gone"
        )


@pytest.fixture
def namespace(api: KubernetesApi) -> Iterator[Namespace]:
    name = f"test-{next(_numbers)}"
    made = Namespace(api, name)
    made.client.create("/api/v1/namespaces", {"metadata": {"name": name}})
    yield made
    # Nobody removes finalizers any more: the objects would stay forever.
    for topic, body in made.all().items():
        if "finalizers" in body["metadata"]:
            made.client.patch(f"{made.topics}/{topic}", {"metadata": {"finalizers": None}})


@pytest.fixture
def cluster() -> Iterator[SimulatedCluster]:
    """The Kafka cluster: ZooKeeper and three brokers."""
    with SimulatedCluster() as simulated:
        yield simulated


@pytest.fixture
def controller_config() -> dict[str, Any]:
    """Fields of the controller's configuration; parametrize it to set some."""
    return {}


@pytest.fixture
def controller(
    cluster: SimulatedCluster, controller_config: dict[str, Any]
) -> Iterator[LiveController]:
    """The real controller, active."""
    with LiveController(cluster, **controller_config) as live:
        yield live


def use_kubeconfig(monkeypatch: pytest.MonkeyPatch, folder: Path, content: str) -> None:
    """Use a kubeconfig in this process. A copy: the sandbox writes its file for each kubectl."""
    copy = folder / "kubeconfig"
    copy.write_text(content)
    monkeypatch.setenv("KUBECONFIG", str(copy))
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)


@pytest.fixture
def kubeconfig(api: KubernetesApi, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    use_kubeconfig(monkeypatch, tmp_path, api.kubeconfig.read_text())


@pytest.fixture
def limited(api: KubernetesApi, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Regent's own user, which has only the rights that a test grants."""
    use_kubeconfig(monkeypatch, tmp_path, api.kubeconfig_for("regent").read_text())


@pytest.fixture
async def proxy(
    api: KubernetesApi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[KubernetesProxy]:
    """In front of the API server, and where clients of the test find one."""
    async with KubernetesProxy(
        KAFKA_TOPIC.kind, api.server, token=api.token, authority=api.ca_certificate
    ) as between:
        monkeypatch.setenv("KUBECONFIG", str(between.kubeconfig(tmp_path / "kubeconfig")))
        monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
        yield between


def grant(
    api: KubernetesApi,
    namespace: str,
    *reading: str,
    get: bool = True,
    patch: bool = True,
    patch_status: bool = True,
    lease: bool = True,
) -> None:
    """The chart's Role for Regent's user, with these verbs for reading lists."""
    single = ["get"] if get else []
    patches = {True: ["patch"], False: []}
    kafka = {"apiGroups": ["kafka.regent.dev"]}
    plurals = [resource.kind.plural for resource in RESOURCES]
    rules = [
        {**kafka, "resources": plurals, "verbs": [*reading, *single, *patches[patch]]},
        *(
            {**kafka, "resources": [f"{each}/status" for each in plurals], "verbs": verbs}
            for verbs in [patches[patch_status]]
            if verbs
        ),
        {"apiGroups": [""], "resources": ["events"], "verbs": ["create"]},
        *(
            {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": verbs}
            for verbs in [["get", "create", "patch"]]
            if lease
        ),
    ]
    bind_role(api, namespace, "regent", rules)


def bind_role(
    api: KubernetesApi, namespace: str, name: str, rules: Sequence[dict[str, Any]]
) -> None:
    """Give Regent's user a Role."""
    group = "rbac.authorization.k8s.io"
    common = {"apiVersion": f"{group}/v1", "metadata": {"name": name, "namespace": namespace}}
    client = KubernetesClient(api)
    client.apply({**common, "kind": "Role", "rules": list(rules)})
    client.apply(
        {
            **common,
            "kind": "RoleBinding",
            "roleRef": {"apiGroup": group, "kind": "Role", "name": name},
            "subjects": [{"kind": "User", "name": "regent", "apiGroup": group}],
        }
    )


@asynccontextmanager
async def running(
    controller: ControllerPort,
    namespace: Namespace,
    *,
    planning: PlanningTools | None = None,
    **settings: Any,
) -> AsyncIterator[KubeOperator]:
    """The Kubernetes side, running; ended in an orderly way."""
    stop, ready = asyncio.Event(), asyncio.Event()
    operators: list[KubeOperator] = []
    task = asyncio.create_task(
        run_kube(
            controller,
            KubeSettings(**{"namespaces": (namespace.name,), **settings}),
            stop_event=stop,
            ready_flag=ready,
            on_operator=operators.append,
            planning=planning,
        )
    )
    waiting = asyncio.create_task(ready.wait())
    try:
        await asyncio.wait({task, waiting}, return_when=asyncio.FIRST_COMPLETED, timeout=120)
        if task.done():
            await task
        assert ready.is_set(), "the operator did not become ready"
        yield operators[0]
    finally:
        waiting.cancel()
        stop.set()
        await asyncio.wait_for(task, timeout=DEADLINE_S)


@pytest.fixture
async def operator(
    controller: LiveController, namespace: Namespace, kubeconfig: None
) -> AsyncIterator[KubeOperator]:
    async with running(controller, namespace) as started:
        yield started


@asynccontextmanager
async def supervised(
    controller: LiveController,
    namespaces: Sequence[str],
    *,
    registry: CollectorRegistry | None = None,
    **settings: Any,
) -> AsyncIterator[KubeHealth]:
    """The Kubernetes side as a process has it, and the controller with it: supervised, and serving
    by the Lease outside a term. Times are short."""
    stop, health = asyncio.Event(), KubeHealth()
    side = KubernetesSide(
        controller,
        KubeSettings(
            **{
                "namespaces": tuple(namespaces),
                "lease_namespace": namespaces[0],
                "lease_duration_s": 1,
                "lease_retry_s": 0.2,
                "unknown_after_s": 1.0,
                "check_interval_s": 0.5,
                **settings,
            }
        ),
        why_inactive=controller.service.why_inactive,
        on_signal=stop.set,
        health=health,
        metrics=ResourceMetrics(registry or CollectorRegistry()),
    )
    loop = asyncio.get_running_loop()
    controller.service.on_eligibility(
        lambda is_elected: _call_in(loop, side.set_elected, is_elected)
    )
    task = asyncio.create_task(side.run(stop))
    try:
        with controller:
            yield health
            stop.set()
            await asyncio.wait_for(task, timeout=DEADLINE_S)
    finally:
        await cancel((task,))


def _call_in(loop: asyncio.AbstractEventLoop, function: Callable[..., None], *args: Any) -> None:
    loop.call_soon_threadsafe(function, *args)


async def wait_for(holds: Callable[[], bool], *, describe: str, timeout_s: float = 120) -> None:
    """Wait until something in this process holds."""

    async def look() -> bool:
        return holds()

    await wait_until_async(look, describe=describe, timeout_s=timeout_s)


def topic(name: str, **spec: Any) -> dict[str, Any]:
    """A KafkaTopic manifest; 3 partitions and 3 replicas unless said otherwise."""
    shape = {} if "replicaAssignment" in spec else {"replicas": 3}
    return {
        "apiVersion": "kafka.regent.dev/v1alpha1",
        "kind": "KafkaTopic",
        "metadata": {"name": name},
        "spec": {"partitions": 3, **shape, **spec},
    }


def is_reconciled(body: dict[str, Any]) -> bool:
    """Whether a Regent has written the status of a resource."""
    return bool(body["status"]["observedGeneration"] != UNOBSERVED)


def condition(body: dict[str, Any], type_: str) -> dict[str, Any]:
    """A condition of a KafkaTopic, empty if there is none."""
    conditions = body.get("status", {}).get("conditions", [])
    return next((c for c in conditions if c["type"] == type_), {})

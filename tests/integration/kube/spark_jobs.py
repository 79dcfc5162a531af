"""Who takes part in a plan on Spark beside Regent: the Spark Operator, the kubelet, the driver.

There are no pods here. So a test writes the statuses that the operator writes, and mounts the
Secret as the kubelet does; what the driver does with that is real.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from regent.kube.client import KubeClient
from regent.kube.plan_runner import PlanTask
from regent.kube.spark_runner import SparkRunner
from regent.planning.goals import PlannerGoals
from regent.planning.snapshot import Snapshot, SnapshotBroker, SnapshotPartition
from regent.planning.spark_jobs import PlanOwner, SparkPolicy, SparkTask, task_digest
from regent.resources.rebalance_spark import RebalanceSpark
from regent.servers.plan_exchange import PlanExchange
from regent.sockets.listening import listening_socket
from regent_rebalance.candidates import make_answer
from regent_rebalance.exchange_client import Exchange
from sandbox import KubernetesApi, wait_until_async
from tests.integration.kube.conftest import Namespace, bind_role

IMAGE = "example.test/planner:1"
POLICY = SparkPolicy(images=("example.test/planner:*",), service_accounts=("spark",))
SNAPSHOT = Snapshot(
    tuple(SnapshotBroker(i, None, alive=True) for i in (1, 2, 3)),
    tuple(SnapshotPartition("orders", p, (1, 2), 1, (10, 10)) for p in range(6)),
)


def plan_task(*, uid: str = "u1", goals: PlannerGoals | None = None, namespace: str) -> PlanTask:
    """A task for a job in a namespace."""
    goals = goals or PlannerGoals()
    owner, options = PlanOwner(namespace, "balance", uid), RebalanceSpark(image=IMAGE)
    digest = task_digest(owner, SNAPSHOT, goals, options)
    return PlanTask(SNAPSHOT.encode(), goals, SparkTask(owner, options, digest))


def allow_spark(api: KubernetesApi, namespace: str) -> None:
    """What the chart's role has for plans on Spark, for Regent's user."""
    rules = [
        {
            "apiGroups": ["sparkoperator.k8s.io"],
            "resources": ["sparkapplications"],
            "verbs": ["get", "list", "create", "delete"],
        },
        {"apiGroups": [""], "resources": ["secrets"], "verbs": ["create"]},
        {"apiGroups": [""], "resources": ["pods/log"], "verbs": ["get"]},
    ]
    bind_role(api, namespace, "regent-spark", rules)


@contextlib.asynccontextmanager
async def regent() -> AsyncIterator[SparkRunner]:
    """The parts of a Regent that run plans on Spark, with the credentials of the environment."""
    exchange = PlanExchange(
        listening_socket("127.0.0.1", 0, setting="planner_exchange"), max_bytes=1_000_000
    )
    async with (
        KubeClient(max_connections=4, request_timeout_s=60) as client,
        exchange.served(),
    ):
        yield SparkRunner(
            client=client,
            exchange=exchange,
            policy=POLICY,
            look_every_s=0.1,
        )
    exchange.close()


@dataclass(frozen=True)
class SparkOperator:
    """The part of the Spark Operator, in a namespace."""

    namespace: Namespace

    @property
    def collection(self) -> str:
        """The path of the SparkApplications of the namespace."""
        group = "sparkoperator.k8s.io/v1beta2"
        return f"/apis/{group}/namespaces/{self.namespace.name}/sparkapplications"

    def jobs(self) -> list[dict[str, Any]]:
        """All SparkApplications."""
        return self.namespace.client.items(self.collection)

    def delete_jobs(self) -> None:
        """Have all SparkApplications deleted."""
        self.namespace.client.delete(self.collection)

    def jobs_with_secrets(self) -> list[dict[str, Any]]:
        """Those whose Secrets exist."""
        secrets = self.namespace.client.items(f"/api/v1/namespaces/{self.namespace.name}/secrets")
        names = {secret["metadata"]["name"] for secret in secrets}
        return [job for job in self.jobs() if secret_of(job) in names]

    async def wait_for_job_of(self, owner: str) -> dict[str, Any]:
        """That of the resource of this name, once its Secret exists."""

        async def look() -> dict[str, Any] | None:
            for job in await asyncio.to_thread(self.jobs_with_secrets):
                if job["metadata"]["ownerReferences"][0]["name"] == owner:
                    return job
            return None

        return await wait_until_async(look, describe=f"a job of {owner}")

    async def wait_for_job(self, *, but: str = "") -> dict[str, Any]:
        """The only one, once its Secret exists and it is not the one of this uid."""

        async def look() -> dict[str, Any] | None:
            ready = [job for job in self.jobs_with_secrets() if job["metadata"]["uid"] != but]
            return ready[0] if ready else None

        found: dict[str, Any] = await wait_until_async(look, describe="a SparkApplication")
        assert len(self.jobs()) == 1
        return found

    def report(self, job: dict[str, Any], state: str, problem: str = "") -> None:
        """Write a status as the operator does."""
        name = job["metadata"]["name"]
        status = {
            "applicationState": {"state": state, "errorMessage": problem},
            "driverInfo": {"podName": f"{name}-driver"},
            "sparkApplicationId": "spark-1",
            "executionAttempts": 1,
            "submissionAttempts": 1,
        }
        self.namespace.client.patch(f"{self.collection}/{name}/status", {"status": status})

    def mount(self, job: dict[str, Any], folder: Path) -> Path:
        """The files that the driver finds in its folder for credentials."""
        secret = secret_of(job)
        secrets = f"/api/v1/namespaces/{self.namespace.name}/secrets"
        found = self.namespace.client.get(f"{secrets}/{secret}")
        assert found["metadata"]["ownerReferences"][0]["uid"] == job["metadata"]["uid"]
        mounted = folder / secret
        mounted.mkdir(exist_ok=True)
        for name, content in found["data"].items():
            (mounted / name).write_bytes(base64.b64decode(content))
        return mounted


def secret_of(job: dict[str, Any]) -> str:
    """The name of the Secret that the driver of a job mounts."""
    (secret,) = job["spec"]["driver"]["secrets"]
    return str(secret["name"])


def drive(exchange_url: str, credentials: Path) -> int:
    """What the driver does, without Spark; the exit status of the planner."""
    exchange = Exchange(exchange_url, credentials, patience_s=60)
    answer = make_answer(exchange.snapshot(), ".json", exchange.task())
    exchange.hand_in(answer.status, answer.said)
    return answer.status

"""Plans as SparkApplications: the real definition of the Spark Operator in a real API server, with
the rights of the chart."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from regent.kube.plan_runner import PlanTask
from regent.kube.planner_process import PlannerProcess
from regent.kube.rebalance_planning import PlanningTools, SparkTools
from regent.kube.spark_runner import SparkRunner
from regent.kube.waiting import cancel
from regent.planning.goals import PlannerGoals
from regent.planning.results import (
    InvalidGoals,
    PlannedChanges,
    PlannerFailed,
    PlanResult,
)
from regent.planning.spark_jobs import Credentials, PlanOwner, SparkTask, spark_application
from regent.resources.partition_reassignment import PartitionReassignment
from regent.resources.rebalance_spark import RebalanceSpark
from regent.servers.plan_exchange import PlanExchange
from regent.sockets.listening import listening_socket
from regent_rebalance.exchange_client import Exchange
from sandbox import KubernetesApi, wait_until, wait_until_async
from sandbox.spark_operator import spark_application_definition
from tests.integration.kube.conftest import Namespace, running
from tests.integration.kube.spark_jobs import (
    IMAGE,
    POLICY,
    SNAPSHOT,
    SparkOperator,
    allow_spark,
    drive,
    plan_task,
    regent,
)
from tests.support.kubernetes_client import DEFINITIONS, KubernetesClient
from tests.support.live_controller import LiveController
from tests.support.simulated_cluster import SimulatedCluster
from tests.unit.kube.test_rebalances_end_to_end import create_topic, log_dirs

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module", autouse=True)
def _definition(api: KubernetesApi) -> Iterator[None]:
    client = KubernetesClient(api)
    name = "sparkapplications.sparkoperator.k8s.io"
    path = f"{DEFINITIONS}/{name}"
    api.kubectl("apply", "--server-side", "-f", spark_application_definition())
    wait_until(
        lambda: client.get(path).get("status", {}).get("conditions") or [],
        until=lambda shown: ("Established", "True") in {(c["type"], c["status"]) for c in shown},
        describe="the definition of SparkApplications to be established",
    )
    yield
    client.delete(path)


@pytest.fixture
def operator_of_spark(
    api: KubernetesApi, namespace: Namespace, limited: None
) -> Iterator[SparkOperator]:
    allow_spark(api, namespace.name)
    operator = SparkOperator(namespace)
    yield operator
    operator.delete_jobs()


@pytest.fixture
async def runner(operator_of_spark: SparkOperator) -> AsyncIterator[SparkRunner]:
    async with regent() as started:
        yield started


@pytest.fixture
def task(namespace: Namespace) -> PlanTask:
    return plan_task(namespace=namespace.name)


def started(runner: SparkRunner, task: PlanTask) -> asyncio.Task[PlanResult]:
    return asyncio.create_task(runner.run(task))


def test_what_is_made_is_what_the_spark_operator_takes(namespace: Namespace) -> None:
    options = RebalanceSpark.model_validate(
        {
            "image": IMAGE,
            "imagePullPolicy": "Never",
            "imagePullSecrets": ["registry"],
            "driver": {"cores": 2, "coreRequest": "500m", "memory": "2g", "memoryOverhead": "1g"},
            "executor": {"instances": 3, "coreRequest": "0.5", "memory": "512m"},
            "sparkConf": {"spark.sql.shuffle.partitions": "8"},
            "workspace": "s3a://bucket/plans",
        }
    )
    task = SparkTask(PlanOwner(namespace.name, "a.b", "u1"), options, "d" * 64)
    document = json.dumps(
        spark_application(task, Credentials(url="http://x:1", token_sha256="a" * 64))
    )
    strictly = ("create", "--dry-run=server", "--validate=strict", "-f", "-")
    assert "created" in namespace.kubectl(*strictly, stdin=document)


async def test_a_job_has_the_plan_of_the_child_process(
    runner: SparkRunner, operator_of_spark: SparkOperator, task: PlanTask, tmp_path: Path
) -> None:
    running = started(runner, task)
    job = await operator_of_spark.wait_for_job()
    operator_of_spark.report(job, "RUNNING")
    credentials = operator_of_spark.mount(job, tmp_path)
    assert (credentials / "token").read_text() not in json.dumps(job)
    assert job["metadata"]["ownerReferences"][0]["uid"] == "u1"
    assert await asyncio.to_thread(drive, runner.exchange.url, credentials) == 0
    planner = PlannerProcess(timeout_s=300, memory_bytes=512 * 1024**2)
    result = await running
    assert result == await planner.run(task)
    assert isinstance(result, PlannedChanges)
    (left,) = operator_of_spark.jobs()
    assert left["metadata"]["uid"] == job["metadata"]["uid"], "it stays for its log"


@pytest.mark.parametrize("has_fetched", [False, True], ids=["before it fetches", "meanwhile"])
async def test_when_regent_dies_the_next_one_takes_the_plan_of_the_same_job(
    runner: SparkRunner,
    operator_of_spark: SparkOperator,
    task: PlanTask,
    tmp_path: Path,
    has_fetched: bool,
) -> None:
    running = started(runner, task)
    job = await operator_of_spark.wait_for_job()
    operator_of_spark.report(job, "RUNNING")
    credentials = operator_of_spark.mount(job, tmp_path)
    fetched = None
    if has_fetched:
        fetched = await asyncio.to_thread(Exchange(runner.exchange.url, credentials).snapshot)
    await cancel((running,))  # nothing is tidied up: as if it were killed
    (left,) = operator_of_spark.jobs()
    assert left["metadata"]["uid"] == job["metadata"]["uid"]
    async with regent() as successor:
        going_on = started(successor, task)
        assert await asyncio.to_thread(drive, successor.exchange.url, credentials) == 0
        result = await going_on
    assert isinstance(result, PlannedChanges)
    assert fetched in (None, SNAPSHOT.encode())
    (left,) = operator_of_spark.jobs()
    assert left["metadata"]["uid"] == job["metadata"]["uid"], "one plan, one job"


async def test_when_a_job_had_answered_the_regent_that_died_another_one_is_made_at_once(
    runner: SparkRunner, operator_of_spark: SparkOperator, task: PlanTask, tmp_path: Path
) -> None:
    """Its successor finds it before the Spark Operator has seen its end."""
    running = started(runner, task)
    job = await operator_of_spark.wait_for_job()
    operator_of_spark.report(job, "RUNNING")
    await cancel((running,))
    async with regent() as successor:
        going_on = started(successor, task)
        credentials = operator_of_spark.mount(job, tmp_path)
        fetched = await asyncio.to_thread(Exchange(successor.exchange.url, credentials).task)
        assert fetched == list(task.goals.arguments()), "it is adopted"
        operator_of_spark.report(job, "COMPLETED")
        other = await operator_of_spark.wait_for_job(but=job["metadata"]["uid"])
        credentials = operator_of_spark.mount(other, tmp_path)
        assert await asyncio.to_thread(drive, successor.exchange.url, credentials) == 0
        assert isinstance(await going_on, PlannedChanges)


async def test_a_job_of_another_task_makes_room(
    runner: SparkRunner, operator_of_spark: SparkOperator, task: PlanTask, namespace: Namespace
) -> None:
    running = started(runner, task)
    job = await operator_of_spark.wait_for_job()
    await cancel((running,))
    other = plan_task(goals=PlannerGoals(excluded=(3,)), namespace=namespace.name)
    running = started(runner, other)
    assert other.spark is not None
    found = await operator_of_spark.wait_for_job(but=job["metadata"]["uid"])
    assert found["metadata"]["name"] == other.spark.name
    await cancel((running,))
    await runner.give_up(other.spark.owner)
    assert operator_of_spark.jobs() == []


async def test_a_driver_that_fails_is_said_with_the_operators_words_and_tried_again(
    runner: SparkRunner, operator_of_spark: SparkOperator, task: PlanTask
) -> None:
    running = started(runner, task)
    job = await operator_of_spark.wait_for_job()
    operator_of_spark.report(job, "FAILED", "driver container failed with ExitCode: 137")
    result = await running
    assert isinstance(result, PlannerFailed)
    assert "state FAILED: it has failed" in result.problem
    assert "the operator says: driver container failed with ExitCode: 137" in result.problem
    assert "log: it cannot be read" in result.problem, "there is no pod here"
    running = started(runner, task)
    await operator_of_spark.wait_for_job(but=job["metadata"]["uid"])
    await cancel((running,))


async def test_a_job_that_ends_without_an_answer_is_a_failure(
    runner: SparkRunner, operator_of_spark: SparkOperator, task: PlanTask
) -> None:
    running = started(runner, task)
    job = await operator_of_spark.wait_for_job()
    operator_of_spark.report(job, "COMPLETED")
    result = await running
    assert isinstance(result, PlannerFailed)
    assert "it has ended without handing in a plan" in result.problem


async def test_a_job_that_somebody_deletes_is_a_failure(
    runner: SparkRunner, operator_of_spark: SparkOperator, task: PlanTask
) -> None:
    running = started(runner, task)
    await operator_of_spark.wait_for_job()
    operator_of_spark.delete_jobs()
    result = await running
    assert isinstance(result, PlannerFailed)
    assert "was deleted before it had a plan" in result.problem


@pytest.mark.parametrize(
    "options",
    [
        RebalanceSpark(image="evil:1"),
        RebalanceSpark(image=IMAGE, workspace="s3a://bucket/plans"),
        RebalanceSpark(image=IMAGE, spark_conf={"spark.hadoop.fs.s3a.endpoint": "evil.test"}),
    ],
    ids=["image", "workspace", "setting of Spark"],
)
async def test_no_job_is_made_with_options_that_the_administrator_does_not_allow(
    runner: SparkRunner, operator_of_spark: SparkOperator, task: PlanTask, options: RebalanceSpark
) -> None:
    assert task.spark is not None
    other = SparkTask(task.spark.owner, options, task.spark.digest)
    result = await runner.run(PlanTask(task.snapshot, task.goals, other))
    assert isinstance(result, InvalidGoals)
    assert operator_of_spark.jobs() == []


async def test_a_missing_right_is_named(
    runner: SparkRunner, operator_of_spark: SparkOperator, task: PlanTask
) -> None:
    namespace = operator_of_spark.namespace
    roles = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace.name}/roles"
    namespace.client.delete(f"{roles}/regent-spark")
    result = await runner.run(task)
    assert isinstance(result, PlannerFailed)
    assert "sparkapplications.sparkoperator.k8s.io is forbidden" in result.problem
    assert "planner.spark.enabled" in result.problem


def rebalance(name: str, **spark: Any) -> dict[str, Any]:
    return {
        "apiVersion": "kafka.regent.dev/v1alpha1",
        "kind": "PartitionReassignment",
        "metadata": {"name": name},
        "spec": {"rebalance": {"spark": {"image": IMAGE, **spark}} if spark else {}},
    }


def planning_tools() -> tuple[PlanExchange, PlanningTools]:
    """What plans are made with, two of them on Spark at a time, and where drivers fetch tasks."""
    exchange = PlanExchange(
        listening_socket("127.0.0.1", 0, setting="planner_exchange"), max_bytes=1_000_000
    )
    return exchange, PlanningTools(
        ask_log_dirs=log_dirs,
        runner=PlannerProcess(timeout_s=300, memory_bytes=512 * 1024**2),
        spark=SparkTools(exchange=exchange, policy=POLICY, concurrent_jobs=2),
    )


async def wait_for_plan(namespace: Namespace, name: str) -> None:
    """Wait until the plan of a PartitionReassignment awaits approval."""

    async def phase() -> str | None:
        path = PartitionReassignment.kind.object_path(namespace.name, name)
        body = await asyncio.to_thread(namespace.client.get, path)
        found: str | None = body.get("status", {}).get("phase")
        return found

    await wait_until_async(
        phase, until=lambda found: found == "AwaitingApproval", describe=f"a plan of {name}"
    )


async def test_a_job_that_finds_no_room_holds_up_no_other_plan_and_goes_with_its_resource(
    operator_of_spark: SparkOperator,
    namespace: Namespace,
    cluster: SimulatedCluster,
    controller: LiveController,
    kubeconfig: None,
    tmp_path: Path,
) -> None:
    create_topic(cluster, controller, "orders", [(1, 2)] * 6)
    exchange, planning = planning_tools()

    async def owners() -> set[str]:
        jobs = await asyncio.to_thread(operator_of_spark.jobs)
        return {job["metadata"]["ownerReferences"][0]["name"] for job in jobs}

    async with exchange.served(), running(controller, namespace, planning=planning):
        for name in ("stuck", "second"):
            namespace.apply(rebalance(name, timeoutSeconds=600))
            await operator_of_spark.wait_for_job_of(name)
        namespace.apply(rebalance("beside"), rebalance("third", timeoutSeconds=600))
        await wait_for_plan(namespace, "beside")
        assert await owners() == {"stuck", "second"}, "the third waits for its turn"
        job = await operator_of_spark.wait_for_job_of("second")
        credentials = operator_of_spark.mount(job, tmp_path)
        assert await asyncio.to_thread(drive, exchange.url, credentials) == 0
        await wait_for_plan(namespace, "second")
        await operator_of_spark.wait_for_job_of("third")
        stuck = PartitionReassignment.kind.object_path(namespace.name, "stuck")
        await asyncio.to_thread(namespace.client.delete, stuck)
        await wait_until_async(
            owners,
            until=lambda found: found == {"second", "third"},
            describe="the job of the resource that is gone to be deleted",
        )
    exchange.close()

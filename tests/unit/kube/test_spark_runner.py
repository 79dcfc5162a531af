"""Jobs on Spark where the API server answers as the one of the tests cannot: without the Spark
Operator's definitions, with a driver's log, or not at all. (The rest is tested with a real one.)"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from http import HTTPStatus
from typing import Any

import aiohttp
import kopf
import pytest
from aiohttp import web

from regent.kube.client import KubeClient
from regent.kube.plan_runner import PlanTask
from regent.kube.spark_runner import SparkRunner
from regent.kube.waiting import cancel
from regent.planning.goals import PlannerGoals
from regent.planning.results import PlannerFailed, PlannerMissing, read_answer
from regent.planning.spark_jobs import (
    TOKEN_ANNOTATION,
    Credentials,
    PlanOwner,
    SparkPolicy,
    SparkTask,
    spark_application,
)
from regent.resources.rebalance_spark import RebalanceSpark
from regent.servers.plan_exchange import STATUS_HEADER, PlanExchange
from regent.sockets.listening import listening_socket
from tests.support.waiting import until

JOBS = "/apis/sparkoperator.k8s.io/v1beta2/namespaces/shop/sparkapplications"
TASK = SparkTask(PlanOwner("shop", "move", "u1"), RebalanceSpark(image="planner:1"), "d" * 64)
POLICY = SparkPolicy(images=("*",), service_accounts=("*",))


def job_body(state: str = "RUNNING") -> dict[str, Any]:
    """The job of the task, as the API server has it."""
    body = spark_application(TASK, Credentials(url="http://x:1", token_sha256="a" * 64))
    body["metadata"] |= {
        "uid": "j1",
        "resourceVersion": "1",
        "creationTimestamp": "2026-01-02T03:04:05Z",
    }
    body["status"] = {
        "applicationState": {"state": state},
        "driverInfo": {"podName": "move-driver"},
    }
    return body


async def _nothing() -> None:
    pass


class ApiServer:
    """Has one job, and its Secret.

    Attributes:
        job: None: the Spark Operator is not installed.
        is_failing: Whether questions for the job fail.
        before_look: Awaited before such a question is answered.
        looks: How many there were.
        failures: How many of them have failed.
        log: The driver's.
        now: The time that it says, a minute after the creation of the job. It is another one than
            Regent's.
        refusal: The Status (403) by which no job is created; None: there is one already.
        secret_refusal: The Status (403) by which no Secret is created; None: there is one already.
        created: The job that is created, and goes if it is deleted; None: there is one already.
        queries: Of the questions for the log.
        others: What else there is.
        deletions: How often the job was deleted.
        deleted: The names of what was deleted.
        paths: What was asked for.
    """

    def __init__(self) -> None:
        self.job: dict[str, Any] | None = job_body()
        self.is_failing = False
        self.before_look: Callable[[], Awaitable[None]] = _nothing
        self.looks = self.failures = 0
        self.log = ""
        self.now = datetime(2026, 1, 2, 3, 5, 5, tzinfo=UTC)
        self.refusal: dict[str, Any] | None = None
        self.secret_refusal: dict[str, Any] | None = None
        self.created: dict[str, Any] | None = None
        self.queries: list[dict[str, str]] = []
        self.others: list[dict[str, Any]] = []
        self.deletions = 0
        self.deleted: list[str] = []
        self.paths: set[str] = set()
        self.url = ""

    async def handle(self, request: web.Request) -> web.Response:
        self.paths.add(request.path)
        if request.path == f"{JOBS}/{TASK.name}":
            await self.before_look()
        response = self._answer(request)
        response.headers["Date"] = format_datetime(self.now, usegmt=True)
        return response

    def _answer(self, request: web.Request) -> web.Response:
        if request.path == "/api/v1/namespaces/shop/pods/move-driver/log":
            self.queries.append(dict(request.query))
            return web.Response(text=self.log)
        if request.path == "/api/v1/namespaces/shop/secrets":
            return self._create_secret(request)
        if self.job is None and (self.created is None or request.path != JOBS):
            return web.json_response({"message": "the server could not find it"}, status=404)
        if self.refusal is not None and request.method == "POST":
            return web.json_response(self.refusal, status=403)
        if self.refusal is not None and request.path != JOBS:
            return web.json_response({"message": "there is no such job"}, status=404)
        if (request.method, request.path) == ("POST", JOBS):
            return self._create()
        if request.path == JOBS:
            return web.json_response(
                {"kind": "SparkApplicationList", "metadata": {}, "items": self._labelled(request)}
            )
        if request.method == "DELETE":
            return self._delete(request)
        assert request.path == f"{JOBS}/{TASK.name}"
        self.looks += 1
        if self.is_failing:
            self.failures += 1
            return web.json_response({"message": "etcd is away"}, status=503)
        return web.json_response(self.job)

    def _create_secret(self, request: web.Request) -> web.Response:
        if self.secret_refusal is not None:
            return web.json_response(self.secret_refusal, status=403)
        assert (request.method, request.query["dryRun"]) == ("POST", "All")
        return web.json_response({"message": "it exists already"}, status=409)

    def _create(self) -> web.Response:
        if self.created is None:
            return web.json_response({"message": "it exists already"}, status=409)
        self.job = self.created
        return web.json_response(self.job, status=201)

    def _delete(self, request: web.Request) -> web.Response:
        self.deletions += 1
        self.deleted.append(request.path.rpartition("/")[2])
        if self.created is not None:
            self.job = None
        return web.json_response({"kind": "Status", "metadata": {}})

    def _labelled(self, request: web.Request) -> list[dict[str, Any]]:
        label, _, value = request.query["labelSelector"].partition("=")
        return [
            each
            for each in (self.job, *self.others)
            if each is not None and each["metadata"]["labels"].get(label) == value
        ]


@pytest.fixture
async def server() -> AsyncIterator[ApiServer]:
    made = ApiServer()
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", made.handle)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    made.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    yield made
    await runner.cleanup()


@pytest.fixture
async def spark(server: ApiServer) -> AsyncIterator[SparkRunner]:
    async def credentials() -> kopf.ConnectionInfo:
        return kopf.ConnectionInfo(server=server.url, token="one")

    exchange = PlanExchange(
        listening_socket("127.0.0.1", 0, setting="planner_exchange"), max_bytes=1000
    )
    async with KubeClient(
        max_connections=4, request_timeout_s=60, credentials=credentials
    ) as client:
        yield SparkRunner(
            client=client,
            exchange=exchange,
            policy=POLICY,
            look_every_s=0.01,
        )
    exchange.close()


def run(spark: SparkRunner) -> asyncio.Task[object]:
    return asyncio.create_task(spark.run(PlanTask(b"{}", PlannerGoals(), TASK)))


async def followed(server: ApiServer) -> None:
    """Wait until the job is followed."""

    await until(lambda: server.looks > 0, "the job to be looked at")


async def test_without_the_spark_operator_it_says_so(spark: SparkRunner, server: ApiServer) -> None:
    server.job = None
    result = await run(spark)
    assert isinstance(result, PlannerMissing)
    assert "needs the Spark Operator, which is not installed" in result.problem
    await spark.give_up(TASK.owner)  # there is nothing to be deleted


@pytest.mark.parametrize(
    ("refusal", "advice"),
    [
        ({"message": "User cannot create resource"}, "; the chart grants the right with"),
        (
            {"message": "create not allowed while custom resource definition is terminating"},
            "; the Spark Operator's definitions are being deleted: install it again",
        ),
        (
            {
                "message": "shop is being terminated",
                "details": {"causes": [{"reason": "NamespaceTerminating"}]},
            },
            "",
        ),
        ({"message": "secrets is forbidden: exceeded quota: small"}, ""),
    ],
)
async def test_the_advice_is_for_what_was_refused(
    spark: SparkRunner, server: ApiServer, refusal: dict[str, Any], advice: str
) -> None:
    """All are refusals with the same status."""
    assert server.job is not None
    server.job["metadata"]["labels"] = {}  # it is not listed
    server.refusal = refusal
    result = await run(spark)
    assert isinstance(result, PlannerFailed)
    assert refusal["message"] + advice in result.problem
    assert advice or result.problem.endswith(refusal["message"])


async def test_a_job_whose_secret_is_refused_does_not_stay(
    spark: SparkRunner, server: ApiServer
) -> None:
    """Its pods would wait for the Secret."""
    server.created, server.job = server.job, None
    server.secret_refusal = {"message": "secrets is forbidden: exceeded quota: small"}
    result = await run(spark)
    assert isinstance(result, PlannerFailed)
    assert "exceeded quota" in result.problem
    assert server.deleted == [TASK.name]


async def test_a_job_that_stayed_without_its_secret_is_deleted_by_the_next_attempt(
    spark: SparkRunner, server: ApiServer
) -> None:
    """Also if Secrets are still refused, so that nobody says whether it has one."""
    server.created = job_body()
    server.secret_refusal = {"message": "secrets is forbidden: exceeded quota: small"}
    result = await run(spark)
    assert isinstance(result, PlannerFailed)
    assert "exceeded quota" in result.problem
    assert server.deleted == [TASK.name, TASK.name], "and the one that was made in its place"


async def test_a_job_that_is_given_up_is_deleted_unless_it_has_ended(
    spark: SparkRunner, server: ApiServer
) -> None:
    server.job = job_body("FAILED")
    await spark.give_up(TASK.owner)
    assert server.deletions == 0, "it stays for its log"
    server.job = job_body("")
    await spark.give_up(TASK.owner)
    assert server.deletions == 1


async def test_a_copy_of_a_job_that_somebody_has_made_is_left_alone(
    spark: SparkRunner, server: ApiServer
) -> None:
    """It has all that kubectl shows of the job: its label, its annotations, its owner."""
    copy = job_body()
    copy["metadata"] |= {"name": "move-copy", "uid": "j2"}
    server.others = [copy]
    running = run(spark)
    await followed(server)
    await cancel((running,))
    assert server.deleted == []
    await spark.give_up(TASK.owner)
    assert server.deleted == [TASK.name]
    server.job = job_body("COMPLETED")
    assert not await spark.has_job(TASK.owner)


async def test_a_job_that_has_lost_its_label_is_adopted(
    spark: SparkRunner, server: ApiServer
) -> None:
    assert server.job is not None
    server.job["metadata"]["labels"] = {}
    running = run(spark)
    await followed(server)
    server.job = job_body("FAILED")
    result = await running
    assert isinstance(result, PlannerFailed)
    assert "it has failed" in result.problem


async def test_an_answer_that_comes_while_the_job_goes_is_taken(
    spark: SparkRunner, server: ApiServer
) -> None:
    assert server.job is not None
    token = hashlib.sha256(b"secret").hexdigest()
    server.job["metadata"]["annotations"][TOKEN_ANNOTATION] = token
    exchange = spark.exchange
    assert isinstance(exchange, PlanExchange)

    async def hand_in() -> None:
        headers = {"Authorization": "Bearer secret", STATUS_HEADER: "3"}
        async with (
            aiohttp.ClientSession(headers=headers) as session,
            session.put(f"{exchange.url}/v1/answer", data=b"no rack has room") as answer,
        ):
            assert answer.status == HTTPStatus.NO_CONTENT
        server.job, server.before_look = None, _nothing

    server.before_look = hand_in
    async with exchange.served():
        result = await run(spark)
    assert result == read_answer(3, b"no rack has room")


async def test_what_has_the_name_of_a_job_and_is_none_of_ours_is_named_with_the_way_out(
    spark: SparkRunner, server: ApiServer
) -> None:
    assert server.job is not None
    del server.job["metadata"]["ownerReferences"]
    result = await run(spark)
    assert isinstance(result, PlannerFailed)
    assert f"SparkApplication {TASK.name}: one of this name exists already" in result.problem
    assert f"kubectl -n shop delete sparkapplication {TASK.name}" in result.problem
    assert server.deleted == []


async def test_the_end_of_the_drivers_log_is_told(spark: SparkRunner, server: ApiServer) -> None:
    running = run(spark)
    await followed(server)
    server.log = "many lines\njava.lang.OutOfMemoryError: Java heap space\n"
    server.job = job_body("FAILED")
    result = await running
    assert isinstance(result, PlannerFailed)
    assert result.problem.endswith(f"driver's log: {server.log.strip()}")
    (query,) = server.queries
    assert query == {
        "container": "spark-kubernetes-driver",
        "tailLines": "20",
        "limitBytes": "16384",
    }


async def test_a_status_of_a_job_chooses_no_other_log(
    spark: SparkRunner, server: ApiServer
) -> None:
    """Regent may read logs in namespaces that who writes the status may not see."""
    running = run(spark)
    await followed(server)
    server.job = job_body("FAILED")
    server.job["status"]["driverInfo"]["podName"] = "../../kube-system/pods/secret"
    result = await running
    assert isinstance(result, PlannerFailed)
    assert "which no pod can be called" in result.problem
    assert server.paths.isdisjoint({"/api/v1/namespaces/kube-system/pods/secret/log"})


async def test_an_api_server_that_is_away_is_waited_for(
    spark: SparkRunner, server: ApiServer
) -> None:
    running = run(spark)
    await followed(server)
    server.is_failing = True

    await until(lambda: server.failures > 1, "questions to fail")
    assert not running.done()
    server.job, server.is_failing = job_body("FAILED"), False
    result = await running
    assert isinstance(result, PlannerFailed)
    assert "it has failed" in result.problem


async def test_the_time_that_a_job_may_take_is_counted_by_the_clock_that_has_dated_it(
    spark: SparkRunner, server: ApiServer
) -> None:
    """The one of the API server: it may be hours from Regent's."""
    running = run(spark)
    await followed(server)
    assert not running.done()
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    server.now += timedelta(seconds=TASK.options.timeout_seconds)
    result = await run(spark)
    assert isinstance(result, PlannerFailed)
    assert "it took longer than 1800 s (timeoutSeconds)" in result.problem
    assert server.deletions == 1

"""Plans from what a history says, and what is said of it."""

from __future__ import annotations

import asyncio
import hashlib
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from pyspark.sql import SparkSession

from regent.kube.plan_runner import PlanTask
from regent.kube.planner_process import PlannerProcess
from regent.planning.goals import PlannerGoals
from regent.planning.histories import PlannerHistory
from regent.planning.results import PlannedChanges, PlanResult, read_answer
from regent.planning.spark_jobs import Credentials, PlanOwner, SparkTask, spark_application
from regent.resources.rebalance_spark import RebalanceSpark
from regent.servers.plan_exchange import PlanExchange
from regent.sockets.listening import listening_socket
from regent_rebalance.cli import plan
from regent_rebalance.errors import HistoryError
from regent_rebalance.files import save_snapshot
from regent_rebalance.history_job import loads_document, loads_for_plan
from regent_rebalance.history_layout import DAY_MS
from regent_rebalance.history_wanted import Wanted
from regent_rebalance.json_files import decode_plan
from regent_rebalance.samples import PartitionSample
from regent_rebalance.workspace import Workspace
from sandbox.process import run_guarded
from tests.integration.planner.sampled import at, partition
from tests.integration.planner.short_jvm import SHORT_JVM
from tests.support.soak import soak
from tests.unit.planner.clusters import cluster

pytestmark = [pytest.mark.integration, pytest.mark.slow]

ROOT = Path(__file__).parents[3]
ENVIRONMENT = {
    "PYTHONPATH": str(ROOT / "spark_tasks"),
    "PYSPARK_PYTHON": sys.executable,
    "JAVA_TOOL_OPTIONS": SHORT_JVM,
}
OPTIONS = ("--goal=RackAwareGoal", "--goal=NetworkInboundUsageDistributionGoal")


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of two topics with two partitions each, one partition receives everything by and by."""

    def moment(minute: int, number: int) -> PartitionSample:
        topic, index = f"t{number // 2}", number % 2
        written = 6_000_000 * minute if number == 0 else 0
        size = 1_000_000 + written
        return partition(size, 100 + written // 1000, topic=topic, number=index, replicas=(1, 2))

    folder = tmp_path_factory.mktemp("history")
    for minute in range(6):
        rows = [moment(minute, number) for number in range(4)]
        Workspace(str(folder)).append(at(minute, *rows))
    return folder


@pytest.fixture(scope="module")
def snapshot(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("taken") / "snapshot.json"
    save_snapshot(cluster(["a", "b", "c"], [[1, 2]] * 4, sizes=[1_000_000] * 4), file)
    return file


def test_loads_of_brokers_are_known(spark: Any, workspace: Path) -> None:
    wanted = Wanted(str(workspace), window=7 * DAY_MS, percentile=95, cluster=None)
    shown = loads_document(spark, wanted)
    assert (shown["cluster"], shown["moments"], shown["missingMoments"]) == ("c1", 6, 0)
    assert not any(shown["bad"].values())
    assert shown["intervals"]["grown"] == 5
    assert shown["intervals"]["idle"] == 15
    one, two = shown["brokers"]
    assert (one["leader_in_percentile"], two["follower_in_percentile"]) == (100_000, 100_000)
    assert (one["out_peak"], one["out_unknown"]) == (None, 4)
    assert [row["in_peak"] for row in shown["partitions"]] == [100_000, 0, 0, 0]


def test_a_plan_is_made_from_the_loads(
    spark: Any, workspace: Path, snapshot: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The command takes the session of this process, which other tests need afterwards."""
    monkeypatch.setattr(SparkSession, "stop", lambda _session: None)
    refused = CliRunner().invoke(plan, [str(snapshot), *OPTIONS])
    assert refused.exit_code == 1
    assert "the snapshot has no rate of any partition" in refused.stderr
    options = (*OPTIONS, "--history", str(workspace), "--json")
    made = CliRunner().invoke(plan, [str(snapshot), *options])
    assert made.exit_code in (0, 4), made.output
    assert "loads are of 6 moments from 2026-11-22T12:00:00" in made.stderr
    assert "the history has no rate of bytes out of 4 of 4 partitions" in made.stderr
    network = [
        s
        for s in decode_plan(made.stdout.encode(), source="-").summary.before
        if s.name == "network in"
    ]
    assert [spread.most for spread in network] == [100_000]


@soak("spark")
def test_a_history_that_cannot_be_read_ends_it_and_nothing_is_planned(
    workspace: Path, snapshot: Path, tmp_path: Path
) -> None:
    torn = shutil.copytree(workspace, tmp_path / "history")
    for file in torn.glob("cluster=c1/partitions/*/*.parquet"):
        file.write_bytes(file.read_bytes()[:50])
    file = tmp_path / "plan.json"
    made = run_guarded(
        [sys.executable, "-m", "regent_rebalance", snapshot, "--history", torn, "-o", file],
        environment=ENVIRONMENT,
        timeout_s=600,
    )
    assert made.exit_code == 7
    assert "6 files are unreadable: loads need two at least" in made.stderr
    assert not file.exists()


GOALS = PlannerGoals(names=("RackAwareGoal", "NetworkInboundUsageDistributionGoal"))


def history_of(place: str) -> PlannerHistory:
    return PlannerHistory(
        place=place, window_s=7 * 86_400, percentile=95, max_age_s=999_999_999, cluster="c1"
    )


@pytest.fixture
def content(snapshot: Path) -> bytes:
    return snapshot.read_bytes()


async def by_job(snapshot: bytes, history: PlannerHistory, folder: Path) -> PlanResult:
    """Return the answer of a driver that gets the arguments of a job's manifest."""
    token = "secret"
    (folder / "token").write_text(token)
    exchange = PlanExchange(
        listening_socket("127.0.0.1", 0, setting="planner_exchange"), max_bytes=1_000_000
    )
    digest = hashlib.sha256(token.encode()).hexdigest()
    task = SparkTask(
        PlanOwner("shop", "balance", "u1"), RebalanceSpark(image="planner:1"), "d" * 64, history
    )
    manifest = spark_application(task, Credentials(url=exchange.url, token_sha256=digest))
    mounted = {"/etc/regent-exchange": str(folder)}
    arguments = [mounted.get(each, each) for each in manifest["spec"]["arguments"]]
    async with exchange.served():
        with exchange.offer(PlanTask(snapshot, GOALS), token_sha256=digest) as offer:
            done = await asyncio.to_thread(
                run_guarded,
                [
                    Path(sys.executable).with_name("spark-submit"),
                    *("--master", "local[2]", "--conf", "spark.ui.enabled=false"),
                    *(ROOT / "spark_tasks" / "plan_on_spark.py", *arguments),
                ],
                environment=ENVIRONMENT,
                timeout_s=600,
            )
            answer = offer.answer
    exchange.close()
    assert answer is not None, done
    assert done.exit_code == 0, done
    return read_answer(answer.status, answer.body)


@soak("spark")
async def test_the_child_process_and_a_job_plan_from_the_same_loads(
    workspace: Path, content: bytes, tmp_path: Path
) -> None:
    planner = PlannerProcess(timeout_s=500, memory_bytes=4 * 1024**3)  # with memory for Spark
    child = await planner.run(PlanTask(content, GOALS, history=history_of(str(workspace))))
    assert isinstance(child, PlannedChanges), child
    assert child.notes[0].startswith("loads are of 6 moments from 2026-11-22T12:00:00")
    assert any("no rate of bytes out of 4 of 4" in note for note in child.notes)
    assert await by_job(content, history_of(workspace.as_uri()), tmp_path) == child


def test_an_old_history_is_not_planned_from(spark: Any, workspace: Path) -> None:
    wanted = Wanted(str(workspace), 7 * DAY_MS, percentile=95, cluster=None, max_age=60_000)
    with pytest.raises(HistoryError, match=r"the newest sample .* 2026-11-22T12:05:00"):
        loads_for_plan(spark, wanted)

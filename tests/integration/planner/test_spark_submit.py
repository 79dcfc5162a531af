"""The planner by ``spark-submit``, on a Spark of this machine."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from regent_rebalance.candidates import best_of, make_answer
from regent_rebalance.files import load_snapshot, save_snapshot
from sandbox.process import Outcome, run_guarded
from tests.integration.planner.short_jvm import SHORT_JVM
from tests.support.soak import soak
from tests.unit.planner.clusters import cluster

pytestmark = [pytest.mark.integration, pytest.mark.slow]

ROOT = Path(__file__).parents[3]


def spark_submit(*arguments: str) -> Outcome:
    return run_guarded(
        [
            Path(sys.executable).with_name("spark-submit"),
            *("--master", "local[2]", "--driver-java-options", SHORT_JVM),
            ROOT / "spark_tasks" / "plan_on_spark.py",
            *arguments,
        ],
        # spark-submit finds Spark, and starts Python, by this one; else by whatever python3 is.
        environment={"PYTHONPATH": str(ROOT / "spark_tasks"), "PYSPARK_PYTHON": sys.executable},
        timeout_s=600,
    )


def test_the_best_candidate_is_written_byte_for_byte(tmp_path: Path) -> None:
    snapshot, plan = tmp_path / "snapshot.parquet", tmp_path / "plan.json"
    save_snapshot(cluster(["a", "b", "c"], [[1, 2]] * 12), snapshot)
    common, wider = ["--max-replicas=100"], ["--replica-balance=1.5", "--leader-balance=1.5"]
    done = spark_submit(
        *("--snapshot", snapshot.as_uri(), "--plan", plan.as_uri()),
        *("--candidate", "", "--candidate", " ".join(wider), "--", *common),
    )
    content = snapshot.read_bytes()
    answers = [make_answer(content, ".parquet", [*common, *options]) for options in ([], wider)]
    assert best_of(answers) == 1, "the second one moves less"
    assert plan.read_bytes() == answers[1].output, done.stderr
    assert done.exit_code == answers[1].status
    (line,) = (line for line in done.stdout.splitlines() if line.startswith("candidate "))
    assert line.startswith("candidate 2 of 2: --max-replicas=100 --replica-balance=1.5")


@soak("spark")
@pytest.mark.parametrize(
    ("snapshot", "plan", "options", "status", "said"),
    [
        (
            "none.json",
            "plan.json",
            [],
            1,
            "none.json cannot be read: java.io.FileNotFoundException",
        ),
        (".", "plan.json", [], 1, "is no file: give the snapshot's own URL"),
        ("bad.json", "plan.json", [], 1, "replicas of t0-0: the snapshot has no broker 9"),
        ("torn.parquet", "plan.json", [], 1, "is no intact Parquet file"),
        ("good.json", "plan.json", ["--max-replicas=1"], 3, "no plan meets the hard goals"),
        ("good.json", "s3://K:secret@bucket/plan.json", [], 1, "give Spark the jars"),
    ],
)
def test_what_cannot_be_planned_is_said_and_nothing_is_written(
    tmp_path: Path, snapshot: str, plan: str, options: list[str], status: int, said: str
) -> None:
    good = tmp_path / "good.json"
    save_snapshot(cluster(["a", "b", "c"], [[1, 2]] * 12), good)
    content = good.read_bytes()
    (tmp_path / "bad.json").write_bytes(
        content.replace(b'"replicas":[1,2]', b'"replicas":[1,9]', 1)
    )
    save_snapshot(load_snapshot(good), tmp_path / "torn.parquet")
    torn = (tmp_path / "torn.parquet").read_bytes()
    (tmp_path / "torn.parquet").write_bytes(torn[: len(torn) // 2])
    target = plan if "://" in plan else (tmp_path / plan).as_uri()
    done = spark_submit(
        *("--snapshot", (tmp_path / snapshot).as_uri(), "--plan", target, "--", *options)
    )
    assert (done.exit_code, said in done.stdout + done.stderr) == (status, True), done
    assert "secret" not in done.stdout + done.stderr
    files = {"good.json", "bad.json", "torn.parquet"}
    assert {each.name for each in tmp_path.iterdir()} == files, "nothing but what was there"

"""The planner by ``spark-submit``, on a Spark of this machine."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from regent_rebalance.candidates import best_of, make_answer
from regent_rebalance.files import save_snapshot
from sandbox.process import run_guarded
from tests.unit.planner.clusters import cluster

pytestmark = [pytest.mark.integration, pytest.mark.slow]

ROOT = Path(__file__).parents[3]


def test_the_best_candidate_is_written_byte_for_byte(tmp_path: Path) -> None:
    snapshot, plan = tmp_path / "snapshot.parquet", tmp_path / "plan.json"
    save_snapshot(cluster(["a", "b", "c"], [[1, 2]] * 12), snapshot)
    common, wider = ["--max-replicas=100"], ["--replica-balance=1.5", "--leader-balance=1.5"]
    done = run_guarded(
        [
            Path(sys.executable).with_name("spark-submit"),
            *("--master", "local[2]", "--conf", "spark.ui.enabled=false"),
            ROOT / "spark_tasks" / "plan_on_spark.py",
            *("--snapshot", snapshot.as_uri(), "--plan", plan.as_uri()),
            *("--candidate", "", "--candidate", " ".join(wider), "--", *common),
        ],
        # spark-submit finds Spark, and starts Python, by this one; else by whatever python3 is.
        environment={"PYTHONPATH": str(ROOT / "spark_tasks"), "PYSPARK_PYTHON": sys.executable},
        timeout_s=600,
    )
    content = snapshot.read_bytes()
    answers = [make_answer(content, ".parquet", [*common, *options]) for options in ([], wider)]
    assert best_of(answers) == 1, "the second one moves less"
    assert plan.read_bytes() == answers[1].output, done.stderr
    assert done.exit_code == answers[1].status
    (line,) = (line for line in done.stdout.splitlines() if line.startswith("candidate "))
    assert line.startswith("candidate 2 of 2: --max-replicas=100 --replica-balance=1.5")

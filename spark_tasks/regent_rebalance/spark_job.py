"""The driver's program of a planning job on Spark (docs/spark.md).

It knows Spark; what is planned, and how, is elsewhere. The planner runs in tasks on executors.
"""

from __future__ import annotations

import shlex
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath
from typing import Any, Final

import click
from py4j.protocol import Py4JJavaError
from pyspark import SparkConf, SparkContext

from regent_rebalance.candidates import PLANS, best_of
from regent_rebalance.errors import HistoryError, PlannerError
from regent_rebalance.exchange_client import Exchange
from regent_rebalance.hadoop_files import (
    HAS_ENDED,
    JVM_ENDED,
    check_file_system,
    first_line,
    read,
    write,
)
from regent_rebalance.history_options import HistoryUnusableError, history_options, noted
from regent_rebalance.history_wanted import HISTORY_UNUSABLE, Wanted, wanted_history
from regent_rebalance.planner_task import answers_of
from regent_rebalance.secret_urls import masked

_APPLICATION: Final = "regent-rebalance"
_UI: Final = "spark.ui.enabled"


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--exchange", "exchange_url", metavar="URL", help="Regent's exchange.")
@click.option(
    "--credentials",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder with the exchange's token, and ca.crt.",
)
@click.option("--workspace", metavar="URL", help="Folder for copies of snapshot and plan.")
@click.option("--snapshot", "snapshot_url", metavar="URL", help="Without an exchange: read this.")
@click.option("--plan", "plan_url", metavar="URL", help="Without an exchange: write this.")
@click.option(
    "--candidate",
    "candidates",
    multiple=True,
    metavar="OPTIONS",
    help="Without an exchange: plan with these options, too, and take the best plan. May be given "
    "several times.",
)
@history_options
@click.argument("options", nargs=-1, type=click.UNPROCESSED)
def main(
    *,
    exchange_url: str | None,
    credentials: Path | None,
    workspace: str | None,
    snapshot_url: str | None,
    plan_url: str | None,
    candidates: tuple[str, ...],
    history: str | None,
    window: int,
    percentile: float,
    cluster: str | None,
    history_max_age: int | None,
    options: tuple[str, ...],
) -> None:
    """Plan on Spark, for Regent's exchange or from a URL to a URL. After `--` come OPTIONS of
    `regent plan make`."""
    wanted = wanted_history(history, window, percentile, cluster, history_max_age)
    try:
        if exchange_url is not None:
            if credentials is None or snapshot_url or plan_url or candidates or options:
                raise click.UsageError(
                    "with --exchange give --credentials, and no task of your own"
                )
            _for_regent(Exchange(exchange_url, credentials), workspace, wanted)
            return
        if snapshot_url is None or plan_url is None or workspace is not None:
            raise click.UsageError("give --snapshot and --plan, or --exchange")
        asked = [[*options, *shlex.split(each)] for each in candidates] or [list(options)]
        sys.exit(_by_hand(snapshot_url, plan_url, asked, wanted))
    except HistoryError as error:
        raise HistoryUnusableError(str(error)) from error
    except PlannerError as error:
        raise click.ClickException(str(error)) from error
    except Py4JJavaError as error:
        raise click.ClickException(f"Spark: {masked(first_line(error))}") from error
    except JVM_ENDED as error:
        raise click.ClickException(HAS_ENDED) from error


def _for_regent(exchange: Exchange, workspace: str | None, history: Wanted | None) -> None:
    options, snapshot = exchange.task(), exchange.snapshot()
    with _context(history) as context:
        planned = snapshot
        if history is not None:
            try:
                planned = _with_history(context, snapshot, ".json", history)
            except HistoryError as error:
                problem = f"Error: {error}"
                click.echo(problem, err=True)
                exchange.hand_in(HISTORY_UNUSABLE, problem.encode())
                return
        (answer,) = answers_of(context, planned, ".json", [options])
        exchange.hand_in(answer.status, answer.said)
        if workspace is not None:
            write(context, f"{workspace}/snapshot.json", planned)
            if answer.status in PLANS:
                write(context, f"{workspace}/plan.json", answer.output)


def _by_hand(
    snapshot_url: str, plan_url: str, asked: Sequence[Sequence[str]], history: Wanted | None
) -> int:
    with _context(history) as context:
        check_file_system(context, plan_url)
        snapshot, suffix = read(context, snapshot_url), PurePosixPath(snapshot_url).suffix
        if history is not None:
            snapshot, suffix = _with_history(context, snapshot, suffix, history), ".json"
        answers = answers_of(context, snapshot, suffix, asked)
        chosen = best_of(answers)
        answer = answers[chosen]
        if answer.status in PLANS:
            write(context, plan_url, answer.output)
        click.echo(answer.errors.decode(errors="replace"), err=True, nl=False)
        if len(asked) > 1:
            click.echo(f"candidate {chosen + 1} of {len(asked)}: {shlex.join(asked[chosen])}")
        return answer.status


def _with_history(context: Any, content: bytes, suffix: str, wanted: Wanted) -> bytes:
    """A snapshot with the loads of a history, as JSON."""
    # Only histories need Spark's SQL, which takes seconds to start, and columns in the driver.
    from pyspark.sql import SparkSession

    from regent_rebalance.files import load_snapshot
    from regent_rebalance.history_job import loads_for_plan
    from regent_rebalance.json_files import encode_snapshot

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / f"snapshot{suffix}"
        file.write_bytes(content)
        taken = load_snapshot(file)
    session = SparkSession(context)
    return encode_snapshot(noted(taken, *loads_for_plan(session, wanted)))


@contextmanager
def _context(history: Wanted | None) -> Iterator[Any]:
    conf = SparkConf().setAppName(_APPLICATION)
    # The JVM is asked: until there is a context, ``conf`` does not have spark-submit's settings.
    if history is None and SparkContext.getSystemProperty(_UI) is None:
        # A page about a single task is not worth the seconds that its server takes to start.
        conf.set(_UI, "false")
    context = SparkContext.getOrCreate(conf)
    try:
        yield context
    finally:
        # Where the JVM has ended, that error is raised already, or the plan is written.
        with suppress(*JVM_ENDED):
            context.stop()

"""Loads from a history: the part that has a Spark session, for the command line and for drivers."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import numpy as np
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from regent_rebalance.errors import HistoryError, InvalidInputError
from regent_rebalance.history_layout import time_of
from regent_rebalance.history_reading import History, read_history, spark_problems
from regent_rebalance.history_wanted import Wanted, check_age
from regent_rebalance.load_model import BAD, HOW, broker_loads, intervals, partition_loads
from regent_rebalance.loads import Loads
from regent_rebalance.ragged import Ints
from regent_rebalance.snapshot import AMOUNT_MAX, UNKNOWN, listed

_APPLICATION: Final = "regent-loads"


@contextmanager
def local_session() -> Iterator[Any]:
    """The session that there is, or one on this machine, or where spark-submit says.

    Raises:
        HistoryError: Spark does not start.
    """
    try:
        session = SparkSession.builder.appName(_APPLICATION).getOrCreate()
    except PySparkException as error:
        raise HistoryError(
            f"Spark, which reads histories, does not start: {error}; it needs Java, and 2 GiB of "
            "memory"
        ) from error
    session.sparkContext.setLogLevel("ERROR")
    try:
        yield session
    finally:
        session.stop()


def loads_for_plan(session: Any, wanted: Wanted) -> tuple[Loads, list[str]]:
    """Loads of all partitions at the percentile; what is to be said of the samples.

    Raises:
        HistoryError: There is no such history, or it is too old, or Spark cannot read it.
    """
    try:
        history = _read(session, wanted)
        check_age(wanted, newest=history.window.moments[-1], now=time.time_ns() // 1_000_000)
        with spark_problems(wanted.workspace):
            table = partition_loads(_intervals(history), percentile=wanted.percentile).toArrow()
    except InvalidInputError as error:
        raise HistoryError(str(error)) from error
    loads = Loads(
        table["topic"].to_pylist(),
        table["partition"].to_pylist(),
        *(_whole(table[f"{name}_percentile"]) for name in ("size", "in", "out")),
    )
    bad = {reason: int(np.sum(table[reason].to_numpy())) for reason in BAD}
    notes = [*history.window.problems(), *_left_out_lines(history), *_bad_lines(bad)]
    return loads, [_span(history), *notes]


def loads_document(session: Any, wanted: Wanted) -> dict[str, Any]:
    """Loads of brokers and partitions, and what is wrong with the samples, as JSON has them.

    Raises:
        InvalidInputError: There is no such history, or Spark cannot read it.
    """
    history = _read(session, wanted)
    known = _intervals(history)
    with spark_problems(wanted.workspace):
        loads = partition_loads(known, percentile=wanted.percentile)
        partitions = loads.toArrow().to_pylist()
        loads = broker_loads(known, history.brokers, percentile=wanted.percentile)
        brokers = loads.toArrow().to_pylist()
    window = history.window
    return {
        "cluster": history.cluster,
        "since": time_of(window.since).isoformat(),
        "until": time_of(window.until).isoformat(),
        "percentile": wanted.percentile,
        "moments": len(window.moments),
        "missingMoments": window.missing,
        "halfMoments": len(window.half),
        "unreadableFiles": list(window.unreadable),
        "leftOut": list(history.left_out),
        "bad": {reason: sum(row[reason] for row in partitions) for reason in BAD},
        "intervals": {how: sum(row[how] for row in partitions) for how in HOW},
        "brokers": sorted(brokers, key=lambda row: int(row["broker"])),
        "partitions": sorted(partitions, key=lambda row: (row["topic"], row["partition"])),
    }


def _read(session: Any, wanted: Wanted) -> History:
    return read_history(session, wanted.workspace, length=wanted.window, cluster=wanted.cluster)


def _intervals(history: History) -> Any:
    return intervals(history.partitions, longest_interval=history.window.longest_interval)


def _whole(column: Any) -> Ints:
    """Whole bytes, UNKNOWN for null, and for more than anything can have."""
    values = column.to_numpy(zero_copy_only=False).astype(np.float64)
    return np.where(values <= AMOUNT_MAX, np.rint(values), UNKNOWN).astype(np.int64)


def _span(history: History) -> str:
    window = history.window
    begin, end = (time_of(moment) for moment in (window.moments[0], window.moments[-1]))
    return (
        f"loads are of {len(window.moments)} moments from {begin.isoformat(timespec='seconds')} to "
        f"{end.isoformat(timespec='seconds')}"
    )


def _left_out_lines(history: History) -> list[str]:
    if not history.left_out:
        return []
    return [
        f"{len(history.left_out)} topics or partitions could not be read at some moments: "
        f"{listed(history.left_out)}"
    ]


def _bad_lines(bad: dict[str, int]) -> list[str]:
    said = [f"{reason.replace('_', ' ')} {count:,}" for reason, count in bad.items() if count]
    return [f"bad samples of partitions: {', '.join(said)}"] if said else []

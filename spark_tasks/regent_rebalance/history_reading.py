"""The history in a workspace (docs/history.md), as Spark reads it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

import pyarrow as pa
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import functions as f

from regent_rebalance.errors import InvalidInputError
from regent_rebalance.hadoop_files import hadoop_url, names_in
from regent_rebalance.history_layout import (
    BROKERS,
    CLUSTER,
    DAY,
    PARTITIONS,
    SampleFile,
    days_of,
    folder_of,
    is_url,
)
from regent_rebalance.sample_files import SCHEMAS
from regent_rebalance.sampled_window import SampledWindow, window_of
from regent_rebalance.secret_urls import masked, shown

_SIMPLE_TYPES: Final = {
    pa.timestamp("ms", tz="UTC"): "timestamp",
    pa.int32(): "int",
    pa.int64(): "bigint",
    pa.float64(): "double",
    pa.string(): "string",
    pa.bool_(): "boolean",
}


class History(NamedTuple):
    """What was sampled of a cluster in a window.

    Attributes:
        partitions, brokers: DataFrames of the intact files.
        left_out: Topics and partitions that could not be read when some samples were taken, sorted.
    """

    cluster: str
    window: SampledWindow
    partitions: Any
    brokers: Any
    left_out: tuple[str, ...] = ()


def read_history(session: Any, workspace: str, *, length: int, cluster: str | None) -> History:
    """The samples of a window that ends with the newest one.

    Args:
        workspace: A folder, or a URL that Hadoop knows.
        length: Of the window, in milliseconds.
        cluster: Its id; None if the workspace has one only.

    Raises:
        InvalidInputError: There are too few samples, or several clusters, or Spark cannot read it.
    """
    with spark_problems(workspace):
        root = _root(workspace)
        chosen = _cluster(session, root, cluster)
        found = {kind: _newest(session, root, chosen, kind) for kind in (PARTITIONS, BROKERS)}
        until = found[PARTITIONS]
        if until is None:
            raise InvalidInputError(f"{shown(workspace)} has no samples of cluster {chosen}")
        since = until - length
        intact: dict[str, dict[str, SampleFile]] = {}
        unreadable: list[str] = []
        for kind in found:
            files = _files(session, root, chosen, kind, since, until)
            rows = _rows_of(session, kind, list(files)) if files else {}
            intact[kind] = {url: file for url, file in files.items() if rows[url] == file.rows}
            unreadable += [shown(url) for url in files if url not in intact[kind]]
        window = window_of(
            [file.moment for file in intact[PARTITIONS].values()],
            [file.moment for file in intact[BROKERS].values()],
            unreadable,
            since=since,
            until=until,
            workspace=shown(workspace),
        )
        rows, brokers = (_read(session, kind, list(intact[kind])) for kind in found)
        left_out = _left_out(rows)
    return History(chosen, window, rows.where("unreadable IS NULL"), brokers, left_out)


def _left_out(rows: Any) -> tuple[str, ...]:
    """Which rows are of what could not be read. Spark passes over the pages without any."""
    found = rows.where("unreadable IS NOT NULL").select("topic", "partition").distinct().collect()
    names = [
        row.topic if row.partition is None else f"{row.topic}-{row.partition}" for row in found
    ]
    return tuple(sorted(names))


@contextmanager
def spark_problems(workspace: str | None = None) -> Iterator[None]:
    """What Spark cannot do is said in a line, without the credentials of URLs.

    Args:
        workspace: What is read, if it is known.

    Raises:
        InvalidInputError: Instead of Spark's errors.
    """
    try:
        yield
    except (Py4JJavaError, PySparkException) as error:
        text = str(error.java_exception) if isinstance(error, Py4JJavaError) else str(error)
        # The cause is what names a damaged page; the file is in the first line.
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        causes = [line for line in lines if line.startswith("Caused by: ")]
        said = "; ".join([*lines[:1], *causes[-1:]]) or type(error).__name__
        said = masked(said, workspace)
        raise InvalidInputError(f"Spark cannot read the samples: {said}") from error


def _root(workspace: str) -> str:
    if not is_url(workspace):
        return f"file://{Path(workspace).absolute()}"  # Hadoop wants it as it is, not quoted
    return hadoop_url(workspace).rstrip("/")


def _cluster(session: Any, root: str, wanted: str | None) -> str:
    names = [name for name in names_in(session.sparkContext, root) if name.startswith(CLUSTER)]
    clusters = [name.removeprefix(CLUSTER) for name in names]
    if wanted is not None and wanted not in clusters:
        raise InvalidInputError(
            f"{shown(root)} has no cluster {wanted}, but {', '.join(clusters) or 'none'}"
        )
    if wanted is None and len(clusters) != 1:
        raise InvalidInputError(
            f"{shown(root)} has samples of {len(clusters)} clusters ({', '.join(clusters)}): name "
            "one (--cluster)"
            if clusters
            else f"{shown(root)} has no samples: take some with regent sample"
        )
    return clusters[0] if wanted is None else wanted


def _newest(session: Any, root: str, cluster: str, kind: str) -> int | None:
    """The newest moment of the files of a kind."""
    context, folder = session.sparkContext, f"{root}/{folder_of(cluster, kind)}"
    for day in reversed([name for name in names_in(context, folder) if name.startswith(DAY)]):
        found = [SampleFile.parse(name) for name in names_in(context, f"{folder}/{day}")]
        moments = [file.moment for file in found if file is not None]
        if moments:
            return max(moments)
    return None


def _files(
    session: Any, root: str, cluster: str, kind: str, since: int, until: int
) -> dict[str, SampleFile]:
    """The files of a window by their URLs, in order."""
    context, folder = session.sparkContext, f"{root}/{folder_of(cluster, kind)}"
    present = frozenset(names_in(context, folder))
    found = {}
    for day in days_of(since, until):
        for name in names_in(context, f"{folder}/{day}") if day in present else ():
            file = SampleFile.parse(name)
            if file is not None and since <= file.moment <= until:
                found[f"{folder}/{day}/{name}"] = file
    return found


def _rows_of(session: Any, kind: str, urls: Sequence[str]) -> dict[str, int]:
    """How many rows files have, as far as they can be read: of most only the ends are looked at."""
    rows = (
        _read(session, kind, urls, skip_corrupt=True)
        .groupBy(f.col("_metadata.file_path").alias("url"))
        .agg(f.count("time").alias("rows"))
        .collect()
    )
    names = {_tail(row.url): row.rows for row in rows}
    return {url: names.get(_tail(url), 0) for url in urls}


def _tail(url: str) -> str:
    """Day and name: Spark writes the rest of a URL in its own way."""
    return "/".join(url.split("/")[-2:])


def _read(session: Any, kind: str, urls: Sequence[str], *, skip_corrupt: bool = False) -> Any:
    reader = (
        session.read.schema(_ddl(SCHEMAS[kind]))
        .option("ignoreCorruptFiles", str(skip_corrupt).lower())
        .option("parquet.page.verify-checksum.enabled", "true")
    )
    return reader.parquet(*urls) if urls else session.createDataFrame([], _ddl(SCHEMAS[kind]))


def _ddl(schema: pa.Schema) -> str:
    """A schema as Spark writes it."""
    return ", ".join(f"{field.name} {_type(field.type)}" for field in schema)


def _type(of: pa.DataType) -> str:
    return f"array<{_type(of.value_type)}>" if pa.types.is_list(of) else _SIMPLE_TYPES[of]

"""What partitions and brokers carry over a window of samples: functions of Spark's DataFrames.

Samples are shuffled once, by partition, and none is collected. What the columns mean, and which
samples are bad, is in docs/history.md.
"""

from __future__ import annotations

from typing import Any, Final

from pyspark.sql import Window
from pyspark.sql import functions as f

from regent_rebalance.snapshot import AMOUNT_MAX

ACCURACY: Final = 10_000
"""Of percentiles: exact for so many values; of more, the rank is wrong by this part of them."""

HOW: Final = ("measured", "idle", "grown", "estimated", "unknown")
"""How the rate of an interval is known, the best way first."""

BAD: Final = (
    "repeated", "impossible", "recreated", "offset_fell",
    "no_leader", "no_size", "no_offset", "gap",
)  # fmt: skip
"""What is wrong with a sample."""

BROKER_LOADS: Final = ("disk", "leader_in", "follower_in", "out")

_KEY: Final = ("topic", "partition")


def intervals(samples: Any, *, longest_interval: int) -> Any:
    """What is known of each partition at each moment, and between that and the moment before.

    Args:
        samples: With the columns of docs/history.md.
        longest_interval: Milliseconds. Rates across a longer one are unknown: samples are missing.

    Returns:
        ``topic``, ``partition``, ``time`` (milliseconds since 1970), ``topic_id``, ``leader``,
        ``replicas``, ``sizes``, ``size``; ``seconds`` since the moment before, ``growth`` (bytes,
        None if not known), ``rate_in``, ``rate_out`` (bytes a second), ``how`` one of :data:`HOW`
        or None at the first moment; ``former``: whether it is of a topic that had the name before;
        a column for each of :data:`BAD`.
    """
    order = Window.partitionBy(*_KEY).orderBy("time")
    before = f.lag(f.struct("time", "leader", "start", "end", "led_size")).over(order)
    dated = _cleaned(samples).withColumns({"before": before, **_identified(order)})
    longest_s = longest_interval / 1000  # more time is not known to have passed at one rate
    judged = dated.withColumns(
        {
            "seconds": (f.col("time") - f.col("before.time")) / 1000,
            "repeated": _true("time = before.time"),
            "recreated": _true("NOT same_topic"),
            "offset_fell": _true(
                "CASE WHEN same_topic IS NULL THEN end < last_end"
                " WHEN same_topic THEN end < before.end END"
            ),
            "no_leader": f.expr("leader IS NULL"),
            "no_size": f.expr("size IS NULL"),
            "no_offset": f.expr("start IS NULL OR end IS NULL"),
            "gap": _true(f"time - before.time > {longest_interval}"),
        }
    )
    told_apart = judged.withColumn(
        "former", _is_former("recreated OR (offset_fell AND same_topic IS NULL)", order)
    )
    followed = told_apart.withColumn(
        "continuous",
        _true("before.time < time AND NOT recreated AND NOT offset_fell"),
    ).withColumns(
        {
            "same_log": _true("continuous AND leader = before.leader"),
            "comparable": _true("continuous AND NOT gap AND end >= before.end"),
        }
    )
    known = followed.withColumn("how", _how()).withColumns(
        {
            "rate_in": _rate_in(),
            "rate_out": f.col("measured_out"),
            "growth": f.expr("CASE WHEN same_log THEN led_size - before.led_size END"),
            "weight": f.expr(f"CASE WHEN before IS NOT NULL THEN least(seconds, {longest_s}) END"),
        }
    )
    values = ("leader", "replicas", "sizes", "size", "growth", "rate_in", "rate_out", "how")
    once = known.withColumns(
        {name: f.expr(f"CASE WHEN NOT repeated THEN {name} END") for name in values}
    )
    return once.select(*_KEY, "time", "topic_id", "former", "seconds", "weight", *values, *BAD)


def partition_loads(intervals: Any, *, percentile: float) -> Any:
    """A row for each partition: docs/history.md has the columns.

    Args:
        intervals: As :func:`intervals` returns them. Those of former topics are counted, no more.
        percentile: From 0 to 100.
    """
    carried = ("leader", "replicas", "size", "growth", "rate_in", "rate_out", "how")
    present = intervals.withColumns(
        {name: f.expr(f"CASE WHEN NOT former THEN {name} END") for name in carried}
    )
    counts = [f.count_if(f.col("how") == how).alias(how) for how in HOW]
    bad = [f.count_if(reason).alias(reason) for reason in BAD]
    return present.groupBy(*_KEY).agg(
        f.expr("count_if(NOT repeated AND NOT former) AS moments"),
        f.count_if("former").alias("former"),
        f.max_by("leader", "time").alias("leader"),
        f.max_by("replicas", f.when(f.col("replicas").isNotNull(), f.col("time"))).alias(
            "replicas"
        ),
        f.max_by("size", f.when(f.col("size").isNotNull(), f.col("time"))).alias("size_last"),
        f.max("size").alias("size_peak"),
        _percentile("size", percentile),
        f.expr("sum(growth) / sum(CASE WHEN growth IS NOT NULL THEN seconds END) AS growth"),
        *_rate_loads("in", percentile),
        *_rate_loads("out", percentile),
        *counts,
        *bad,
    )


def broker_loads(intervals: Any, brokers: Any, *, percentile: float) -> Any:
    """A row for each broker: docs/history.md has the columns.

    Args:
        intervals: As :func:`intervals` returns them.
        brokers: Samples of brokers.
        percentile: From 0 to 100.
    """
    sums = _broker_sums(intervals)
    listed = brokers.withColumn("time", f.unix_millis("time"))
    # A broker without replicas carries nothing, where the partitions of the moment are known.
    moments = listed.join(sums.select("time").distinct(), "time", "left_semi")
    loads = (
        moments.select("broker", "time")
        .join(sums, ["broker", "time"], "full")
        .withColumns(
            {
                name: f.expr(f"CASE WHEN replicas IS NULL THEN 0 ELSE {name} END")
                for name in (*BROKER_LOADS, "disk_unknown", "in_unknown", "out_unknown")
            }
        )
        .fillna(0, ["replicas", "leaders"])
    )
    columns = [
        column
        for name in BROKER_LOADS
        for column in (
            f.max(name).alias(f"{name}_peak"),
            _percentile(name, percentile),
            f.avg(name).alias(f"{name}_mean"),
        )
    ]
    slope = "regr_slope(disk, time / 1000) FILTER (WHERE disk_unknown = 0) AS disk_growth"
    carried = loads.groupBy("broker").agg(
        f.count("*").alias("moments"),
        f.max_by("replicas", "time").alias("replicas"),
        f.max_by("leaders", "time").alias("leaders"),
        *columns,
        f.expr(slope),
        _most_unknown("disk", "replicas"),
        _most_unknown("in", "replicas"),
        _most_unknown("out", "leaders"),
    )
    latest = listed.groupBy("broker").agg(
        *(f.max_by(name, "time").alias(name) for name in ("rack", "alive", "disk_bytes"))
    )
    return latest.join(carried, "broker", "full")


def _cleaned(samples: Any) -> Any:
    """Samples without values that cannot be."""

    amounts = f"BETWEEN 0 AND {AMOUNT_MAX}"

    def possible(column: str) -> str:
        return f"CASE WHEN {column} {amounts} THEN {column} END"

    impossible = " OR ".join(
        f"coalesce({column} NOT {amounts}, false)"
        for column in ("log_start_offset", "log_end_offset", "bytes_in", "bytes_out")
    )
    return (
        samples.select(
            *_KEY,
            "topic_id",
            "created",
            "replicas",
            "compacted",
            f.unix_millis("time").alias("time"),
            f.expr("CASE WHEN leader >= 0 THEN leader END AS leader"),
            f.expr(f"transform(sizes, size -> {possible('size')}) AS sizes"),
            f.expr(f"{possible('log_start_offset')} AS start"),
            f.expr(f"{possible('log_end_offset')} AS end"),
            f.expr(f"{possible('bytes_in')} AS measured_in"),
            f.expr(f"{possible('bytes_out')} AS measured_out"),
            f.expr(
                f"{impossible} OR coalesce(exists(sizes, size -> size NOT {amounts}), false) "
                "AS impossible"
            ),
        )
        .withColumn(
            "led_size",
            f.expr("try_element_at(sizes, int(nullif(array_position(replicas, leader), 0)))"),
        )
        .withColumn("size", f.expr("coalesce(led_size, array_max(sizes))"))
    )


def _identified(order: Any) -> dict[str, Any]:
    """Whether a moment is of the same topic as those before it: by its id, else by the transaction
    that created it; null where neither tells. And the last end offset before it.

    What a moment lacks is that of the last one that has it.
    """
    earlier = order.rowsBetween(Window.unboundedPreceding, -1)

    def last(column: str) -> Any:
        return f.last(column, ignorenulls=True).over(earlier)

    same_id = f.col("topic_id") == last("topic_id")
    same_creation = f.col("created") == last("created")
    return {"same_topic": f.coalesce(same_id, same_creation), "last_end": last("end")}


def _is_former(begins_anew: str, order: Any) -> Any:
    """Whether another topic of the same name begins later.

    Frames that grow from the first row, or have all rows, are read once for each partition.
    """
    up_to_here = order.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    everything = order.rowsBetween(Window.unboundedPreceding, Window.unboundedFollowing)
    begun = f.count_if(f.expr(begins_anew))
    return begun.over(up_to_here) < begun.over(everything)


def _how() -> Any:
    return f.expr(
        """
        CASE WHEN measured_in IS NOT NULL THEN 'measured'
             WHEN before IS NULL THEN NULL
             WHEN NOT comparable THEN 'unknown'
             WHEN end = before.end THEN 'idle'
             WHEN compacted IS NULL OR compacted THEN 'unknown'
             WHEN same_log AND start = before.start AND led_size > before.led_size THEN 'grown'
             WHEN end > start AND led_size IS NOT NULL THEN 'estimated'
             ELSE 'unknown' END
        """
    )


def _rate_in() -> Any:
    return f.expr(
        """
        CASE how WHEN 'measured' THEN measured_in
                 WHEN 'idle' THEN 0
                 WHEN 'grown' THEN (led_size - before.led_size) / seconds
                 WHEN 'estimated' THEN (end - before.end) * (led_size / (end - start)) / seconds
        END
        """
    )


def _rate_loads(way: str, percentile: float) -> list[Any]:
    rate = f"rate_{way}"
    mean = f"sum({rate} * weight) / sum(CASE WHEN {rate} IS NOT NULL THEN weight END)"
    return [
        f.expr(f"{mean} AS {way}_mean"),
        f.max(rate).alias(f"{way}_peak"),
        _percentile(rate, percentile, name=way),
    ]


def _broker_sums(intervals: Any) -> Any:
    """A row for each broker and moment."""
    located = f.arrays_zip(f.col("replicas").alias("broker"), f.col("sizes").alias("size"))
    replicas = (
        intervals.where(~f.col("repeated"))
        .withColumn("replica", f.explode(located))
        .withColumns({"broker": f.col("replica.broker"), "size": f.col("replica.size")})
        .withColumn("leads", _true("leader = broker"))
        .select("broker", "time", "leads", "size", "rate_in", "rate_out")
    )

    def summed(what: str, where: str, name: str) -> Any:
        """Nothing where there is nothing to add, unknown where nothing of it is known."""
        return f.expr(
            f"CASE WHEN count_if({where}) = 0 THEN 0"
            f" ELSE try_sum({what}) FILTER (WHERE {where}) END "
            f"AS {name}"
        )

    return replicas.groupBy("broker", "time").agg(
        f.count("*").alias("replicas"),
        f.count_if("leads").alias("leaders"),
        summed("size", "true", "disk"),
        summed("rate_in", "leads", "leader_in"),
        summed("rate_in", "NOT leads", "follower_in"),
        summed("rate_out", "leads", "out"),
        f.expr("count_if(size IS NULL) AS disk_unknown"),
        f.expr("count_if(rate_in IS NULL) AS in_unknown"),
        f.expr("count_if(leads AND rate_out IS NULL) AS out_unknown"),
    )


def _most_unknown(what: str, of: str) -> Any:
    """At most at one moment of those at which something is known; else at any."""
    name = f"{what}_unknown"
    some = f.max(f.when(f.col(name) < f.col(of), f.col(name)))
    return f.coalesce(some, f.max(name)).alias(name)


def _percentile(column: str, percentile: float, *, name: str | None = None) -> Any:
    found = f.percentile_approx(column, percentile / 100, ACCURACY)
    return found.alias(f"{name or column}_percentile")


def _true(condition: str) -> Any:
    """A condition that does not hold where it is not known."""
    return f.expr(f"coalesce({condition}, false)")

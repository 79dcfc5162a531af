"""The load model on histories whose loads are known."""

from __future__ import annotations

import dataclasses
import math
import random
from collections.abc import Iterable
from typing import Any

import pytest

from regent_rebalance.load_model import BAD, HOW, broker_loads, intervals, partition_loads
from regent_rebalance.samples import PartitionSample, Sample
from tests.integration.planner.sampled import MINUTE, at, frames, partition
from tests.support.soak import soak

pytestmark = [pytest.mark.integration, pytest.mark.slow]

LONGEST = 15 * MINUTE


def loads_of(
    spark: Any, samples: Iterable[Sample], *, percentile: float = 95
) -> dict[str, dict[str, Any]]:
    partitions, _ = frames(spark, samples)
    found = partition_loads(intervals(partitions, longest_interval=LONGEST), percentile=percentile)
    return {f"{row.topic}-{row.partition}": row.asDict() for row in found.collect()}


def loads_of_one(spark: Any, samples: Iterable[Sample], **options: Any) -> dict[str, Any]:
    (row,) = loads_of(spark, samples, **options).values()
    return row


def brokers_of(spark: Any, samples: Iterable[Sample]) -> dict[int, dict[str, Any]]:
    partitions, brokers = frames(spark, samples)
    known = intervals(partitions, longest_interval=LONGEST)
    found = broker_loads(known, brokers, percentile=50)
    return {row.broker: row.asDict() for row in found.collect()}


def bad_of(row: dict[str, Any]) -> dict[str, int]:
    return {reason: row[reason] for reason in BAD if row[reason]}


def how_of(row: dict[str, Any]) -> dict[str, int]:
    return {how: row[how] for how in HOW if row[how]}


def test_a_log_that_grows_says_what_was_written(spark: Any) -> None:
    row = loads_of_one(
        spark,
        [
            at(0, partition(1_000, 10)),
            at(1, partition(7_000, 70)),
            at(3, partition(7_000, 70)),
            at(4, partition(10_000, 100)),
        ],
    )
    assert how_of(row) == {"idle": 1, "grown": 2}
    assert (row["in_mean"], row["in_peak"]) == (9_000 / 240, 6_000 / 60)
    assert row["growth"] == 9_000 / 240
    assert (row["size_last"], row["size_peak"], row["moments"]) == (10_000, 10_000, 4)
    assert (row["leader"], row["replicas"]) == (1, [1])
    assert row["out_mean"] is row["out_peak"] is row["out_percentile"] is None
    assert bad_of(row) == {}


@soak("spark")
def test_where_segments_were_deleted_records_are_as_large_as_the_mean(spark: Any) -> None:
    # 60 records are left, of 100 bytes each, and 90 have come.
    row = loads_of_one(spark, [at(0, partition(5_000, 50)), at(1, partition(6_000, 140, start=80))])
    assert how_of(row) == {"estimated": 1}
    assert row["in_peak"] == row["in_mean"] == 90 * 100 / 60
    assert row["growth"] == 1_000 / 60


@soak("spark")
def test_another_leader_has_another_size_on_its_disk(spark: Any) -> None:
    def moment(end: int, leader: int) -> PartitionSample:
        return partition(end=end, leader=leader, replicas=(1, 2), sizes=(4_000, 9_000))

    row = loads_of_one(spark, [at(0, moment(90, 1)), at(1, moment(120, 2))])
    assert how_of(row) == {"estimated": 1}
    assert row["in_peak"] == 30 * (9_000 / 120) / 60
    assert row["growth"] is None, "the two leaders' logs do not compare"
    assert (row["size_last"], row["leader"]) == (9_000, 2)


@soak("spark")
@pytest.mark.parametrize("compacted", [True, None])
def test_compacted_topics_are_known_only_while_nothing_is_written(
    spark: Any, compacted: bool | None
) -> None:
    row = loads_of_one(
        spark,
        [
            at(0, partition(1_000, 10, compacted=compacted)),
            at(1, partition(2_000, 20, compacted=compacted)),
            at(2, partition(2_000, 20, compacted=compacted)),
        ],
    )
    assert how_of(row) == {"idle": 1, "unknown": 1}
    assert (row["in_mean"], row["in_peak"]) == (0, 0)


@soak("spark")
def test_what_was_measured_comes_first(spark: Any) -> None:
    row = loads_of_one(
        spark,
        [
            at(0, partition(1_000, 10, bytes_in=7.0, bytes_out=30.0)),
            at(1, partition(2_000, 20, bytes_in=9.0, bytes_out=10.0)),
            at(4, partition(2_000, 20, bytes_in=1.0)),
        ],
    )
    assert how_of(row) == {"measured": 3}
    assert (row["in_mean"], row["in_peak"]) == ((9 * 60 + 1 * 180) / 240, 9)
    assert (row["out_mean"], row["out_peak"]) == (10, 30)


@soak("spark")
@pytest.mark.parametrize(("percentile", "rank"), [(0, 1), (50, 50), (95, 95), (99.5, 100)])
def test_percentiles_are_nearest_ranks(spark: Any, percentile: float, rank: int) -> None:
    values = [float(value) for value in range(1, 101)]
    random.Random(5).shuffle(values)
    samples = [
        at(minute, partition(int(value) * 10, bytes_in=value, bytes_out=value * 2))
        for minute, value in enumerate(values)
    ]
    row = loads_of_one(spark, samples, percentile=percentile)
    assert (row["size_percentile"], row["in_percentile"]) == (rank * 10, rank)
    assert (row["size_peak"], row["in_peak"], row["out_percentile"]) == (1_000, 100, rank * 2)


@soak("spark")
@pytest.mark.parametrize(
    ("samples", "bad"),
    [
        pytest.param(
            [partition(5, 10), partition(-5, 20)], {"impossible": 1, "no_size": 1}, id="size"
        ),
        pytest.param(
            [partition(5, -10), partition(5, 10)], {"impossible": 1, "no_offset": 1}, id="offset"
        ),
        pytest.param(
            [partition(), partition(5, 200, topic_id="B", bytes_in=-1.0)],
            {"impossible": 1, "recreated": 1},
            id="rate",
        ),
        pytest.param(
            [partition(), partition(5, 200, topic_id="B", bytes_in=math.nan)],
            {"impossible": 1, "recreated": 1},
            id="no number",
        ),
        pytest.param(
            [partition(5, 10), partition(2**62, 20)],
            {"impossible": 1, "no_size": 1},
            id="huge size",
        ),
        pytest.param(
            [partition(5, 2**62), partition(5, 10)],
            {"impossible": 1, "no_offset": 1},
            id="huge offset",
        ),
        pytest.param(
            [partition(), partition(5, 200, topic_id="B", bytes_in=1e308)],
            {"impossible": 1, "recreated": 1},
            id="huge rate",
        ),
        pytest.param(
            [partition(), partition(2_000, 200, leader=None)], {"no_leader": 1}, id="no leader"
        ),
        pytest.param([partition(), partition(None, 200)], {"no_size": 1}, id="no size"),
        pytest.param([partition(), partition(2_000, None)], {"no_offset": 1}, id="no offset"),
    ],
)
def test_a_bad_sample_is_counted_and_its_rate_unknown(
    spark: Any, samples: list[PartitionSample], bad: dict[str, int]
) -> None:
    row = loads_of_one(spark, [at(i, sample) for i, sample in enumerate(samples)])
    assert bad_of(row) == bad
    assert row["in_mean"] is row["in_peak"] is row["in_percentile"] is None


@soak("spark")
def test_a_partition_without_leader_is_known_by_nothing(spark: Any) -> None:
    row = loads_of_one(spark, [at(0, partition()), at(1, partition(2_000, 200, leader=None))])
    assert row["leader"] is None
    assert how_of(row) == {"unknown": 1}
    assert row["size_last"] == 2_000, "the largest replica"


def test_rates_across_missing_moments_are_unknown(spark: Any) -> None:
    row = loads_of_one(
        spark,
        [at(0, partition(1_000, 10)), at(5, partition(2_000, 20)), at(25, partition(9_000, 90))],
    )
    assert bad_of(row) == {"gap": 1}
    assert how_of(row) == {"grown": 1, "unknown": 1}
    assert row["in_peak"] == 1_000 / 300
    assert row["growth"] == 8_000 / 1_500, "how much it grew is known"


@soak("spark")
def test_a_partition_that_is_twice_in_a_moment_counts_once(spark: Any) -> None:
    twice = partition(2_000, 20)
    samples = [at(0, partition(1_000, 10)), at(1, twice, twice), at(2, partition(3_000, 30))]
    row = loads_of_one(spark, samples)
    assert (bad_of(row), row["moments"]) == ({"repeated": 1}, 3)
    assert row["in_mean"] == 1_000 / 60
    assert brokers_of(spark, samples)[1]["disk_peak"] == 3_000


ID, CREATION, NEITHER = {"topic_id": "B"}, {"topic_id": None, "created": 9}, {"topic_id": None}


@soak("spark")
@pytest.mark.parametrize(
    ("former", "present", "bad"),
    [
        pytest.param({"topic_id": "A", "created": 5}, ID, {"recreated": 1}, id="id"),
        pytest.param({"topic_id": "A"}, {**ID, "created": 9}, {"recreated": 1}, id="id alone"),
        pytest.param(CREATION, {**CREATION, "created": 12}, {"recreated": 1}, id="creation"),
        pytest.param(NEITHER, NEITHER, {"offset_fell": 1}, id="offset"),
    ],
)
def test_a_topic_that_is_created_again_has_no_history_of_the_former_one(
    spark: Any, former: dict[str, Any], present: dict[str, Any], bad: dict[str, int]
) -> None:
    samples = [
        at(0, partition(1_000, 10, **former)),
        at(1, partition(2_000, 20, bytes_out=70.0, **former)),
        at(2, partition(90, 9, **present)),
        at(3, partition(100, 10, **present)),
    ]
    row = loads_of_one(spark, samples)
    assert (bad_of(row), how_of(row)) == (bad, {"unknown": 1, "grown": 1})
    assert (row["moments"], row["former"]) == (2, 2)
    assert row["growth"] == row["in_mean"] == row["in_peak"] == row["in_percentile"] == 10 / 60
    assert (row["size_peak"], row["size_percentile"], row["size_last"]) == (100, 100, 100)
    assert row["out_peak"] is None
    assert brokers_of(spark, samples)[1]["disk_peak"] == 2_000, "the broker did carry it"


def test_an_unclean_leader_does_not_end_a_history(spark: Any) -> None:
    def moment(end: int, **of: Any) -> PartitionSample:
        return partition(end * 100, end, **of)

    for of in ({"topic_id": "A"}, {"topic_id": None, "created": 5}):
        samples = [at(0, moment(10, **of)), at(1, moment(70, **of)), at(2, moment(60, **of))]
        row = loads_of_one(spark, samples)
        assert (bad_of(row), how_of(row)) == ({"offset_fell": 1}, {"grown": 1, "unknown": 1})
        assert (row["moments"], row["in_peak"], row["former"]) == (3, 6_000 / 60, 0)


@soak("spark")
def test_what_was_not_told_for_a_moment_hides_no_new_topic(spark: Any) -> None:
    ids = loads_of_one(
        spark,
        [
            at(0, partition(1_000, 10)),
            at(1, partition(1_000, 10, topic_id=None)),
            at(2, partition(2_000, 20, topic_id="B")),
        ],
    )
    assert (bad_of(ids), ids["moments"]) == ({"recreated": 1}, 1)
    offsets = loads_of_one(
        spark,
        [
            at(0, partition(1_000, 10, topic_id=None)),
            at(1, partition(1_000, None, topic_id=None)),
            at(2, partition(200, 2, topic_id=None)),
        ],
    )
    assert (bad_of(offsets), offsets["moments"]) == ({"no_offset": 1, "offset_fell": 1}, 1)


@soak("spark")
def test_topics_that_get_ids_are_the_same_ones(spark: Any) -> None:
    """Kafka gives them to topics that exist when inter.broker.protocol.version becomes 2.8."""
    row = loads_of_one(
        spark,
        [
            at(0, partition(1_000, 10, topic_id=None, created=5)),
            at(1, partition(7_000, 70, topic_id="A", created=5)),
        ],
    )
    assert (bad_of(row), row["in_peak"], row["moments"]) == ({}, 100, 2)


def test_brokers_carry_what_they_lead_and_what_they_follow(spark: Any) -> None:
    def moment(minute: int) -> Sample:
        return at(
            minute,
            partition(1_000 + 600 * minute, 10 + minute, number=0, replicas=(1, 2)),
            partition(500 + 60 * minute, 5 + minute, number=1, leader=2, replicas=(2, 1)),
            brokers=(1, 2, 3),
        )

    brokers = brokers_of(spark, map(moment, range(5)))
    one, two, three = (brokers[id_] for id_ in (1, 2, 3))
    assert (one["leader_in_peak"], one["follower_in_peak"]) == (10, 1)
    assert (two["leader_in_mean"], two["follower_in_percentile"]) == (1, 10)
    assert (one["disk_peak"], one["disk_percentile"], one["disk_mean"]) == (4_140, 2_820, 2_820)
    assert one["disk_growth"] == pytest.approx(11)
    assert (one["replicas"], one["leaders"], one["moments"]) == (2, 1, 5)
    assert one["out_peak"] is None
    assert (one["disk_unknown"], one["in_unknown"], one["out_unknown"]) == (0, 0, 1)
    assert (three["disk_peak"], three["leader_in_peak"], three["replicas"]) == (0, 0, 0)
    assert (three["out_peak"], three["rack"], three["disk_bytes"]) == (0, "a", 1_000_000)


@soak("spark")
def test_what_a_brokers_sum_lacks_is_counted(spark: Any) -> None:
    samples = [
        at(
            minute,
            partition(60 * minute, minute, number=0),
            partition(60 * minute, minute, number=1, compacted=True),
            partition(None, None, number=2),
        )
        for minute in range(1, 4)
    ]
    one = brokers_of(spark, samples)[1]
    assert (one["leader_in_peak"], one["in_unknown"]) == (1, 2)
    assert (one["disk_peak"], one["disk_unknown"]) == (360, 1)
    assert one["disk_growth"] is None


@soak("spark")
def test_brokers_without_partitions_of_the_moment_are_unknown(spark: Any) -> None:
    samples = [at(0, partition()), dataclasses.replace(at(1, brokers=(1, 2)), partitions=())]
    two = brokers_of(spark, samples)[2]
    assert (two["moments"], two["disk_peak"]) == (1, 0)


def test_samples_are_shuffled_once(spark: Any) -> None:
    partitions, _ = frames(spark, [at(0, partition())])
    loads = partition_loads(intervals(partitions, longest_interval=LONGEST), percentile=95)
    plan = loads._jdf.queryExecution().executedPlan().toString()
    assert plan.count("Exchange hashpartitioning") == 1, plan

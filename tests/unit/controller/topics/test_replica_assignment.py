"""Placement of replicas: Kafka's documented examples, and what holds for every cluster."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from regent.admin.replica_assignment import (
    BrokerRack,
    Pattern,
    PlacementError,
    arrange,
    assign_replicas,
    continue_assignment,
)

FIRST = Pattern(start=0, shift=0)
SIX_BROKERS = {0: "rack1", 1: "rack3", 2: "rack3", 3: "rack2", 4: "rack2", 5: "rack1"}


def without_racks(count: int) -> list[BrokerRack]:
    return [BrokerRack(broker_id, None) for broker_id in range(count)]


def in_racks(racks: Mapping[int, str]) -> list[BrokerRack]:
    return [BrokerRack(broker_id, rack) for broker_id, rack in racks.items()]


class TestExamplesOfKafka:
    def test_ten_partitions_on_five_brokers(self) -> None:
        placement = assign_replicas(
            without_racks(5), partitions=10, replication_factor=3, pattern=FIRST
        )
        assert placement == {
            0: (0, 1, 2),
            1: (1, 2, 3),
            2: (2, 3, 4),
            3: (3, 4, 0),
            4: (4, 0, 1),
            5: (0, 2, 3),
            6: (1, 3, 4),
            7: (2, 4, 0),
            8: (3, 0, 1),
            9: (4, 1, 2),
        }

    def test_brokers_are_dealt_out_rack_by_rack(self) -> None:
        assert arrange(in_racks(SIX_BROKERS)) == [0, 3, 1, 5, 4, 2]

    def test_racks_of_different_sizes_run_out_one_after_the_other(self) -> None:
        racks = {0: "a", 1: "a", 2: "a", 3: "b", 4: "c", 5: "c"}
        assert arrange(in_racks(racks)) == [0, 3, 4, 1, 5, 2]

    def test_seven_partitions_across_three_racks(self) -> None:
        placement = assign_replicas(
            in_racks(SIX_BROKERS), partitions=7, replication_factor=3, pattern=FIRST
        )
        assert placement == {
            0: (0, 3, 1),
            1: (3, 1, 5),
            2: (1, 5, 4),
            3: (5, 4, 2),
            4: (4, 2, 0),
            5: (2, 0, 3),
            6: (0, 4, 2),
        }


class TestGrowth:
    def test_five_brokers_with_two_partitions_from_the_fourth_on(self) -> None:
        grown = continue_assignment(without_racks(5), {0: (3,), 1: (4,)}, partitions=3)
        assert grown == {2: (0,), 3: (1,), 4: (2,)}

    def test_a_partition_far_away_is_no_work(self) -> None:
        """Somebody has left numbers out: only those that exist are looked at."""
        existing = {0: (0,), 1: (1,), 2_000_000_000: (0,)}
        grown = continue_assignment(without_racks(5), existing, partitions=2)
        assert grown == {2_000_000_001: (1,), 2_000_000_002: (2,)}

    def test_if_the_first_leader_is_gone_the_next_id_takes_its_place(self) -> None:
        brokers = [BrokerRack(b, None) for b in (1, 5, 7)]
        assert continue_assignment(brokers, {0: (4,)}, partitions=2) == {1: (7,), 2: (1,)}

    def test_if_the_last_broker_is_gone_the_first_takes_its_place(self) -> None:
        brokers = [BrokerRack(b, None) for b in (1, 5)]
        assert continue_assignment(brokers, {0: (9,)}, partitions=1) == {1: (5,)}

    def test_an_assignment_by_hand_is_followed_as_far_as_it_shows_a_pattern(self) -> None:
        existing = {0: (0, 3), 1: (1, 4), 2: (0, 1), 3: (3, 1)}
        grown = continue_assignment(without_racks(5), existing, partitions=1)
        assert grown == {4: (4, 2)}


class TestRefusals:
    @pytest.mark.parametrize(
        ("partitions", "factor", "field", "said"),
        [
            (0, 1, "partitions", "0 partitions"),
            (-1, 1, "partitions", "-1 partitions"),
            (1, 0, "replication_factor", "at least 1"),
            (1, 4, "replication_factor", "larger than the number of live brokers, 3"),
        ],
    )
    def test_impossible_numbers(self, partitions: int, factor: int, field: str, said: str) -> None:
        with pytest.raises(PlacementError, match=said) as refused:
            assign_replicas(
                without_racks(3), partitions=partitions, replication_factor=factor, pattern=FIRST
            )
        assert refused.value.field == field

    @pytest.mark.parametrize("first", [None, "a"])
    def test_racks_on_some_brokers_only(self, first: str | None) -> None:
        brokers = [BrokerRack(1, first), BrokerRack(2, "a"), BrokerRack(3, None)]
        without = r"brokers \[3\]" if first else r"brokers \[1, 3\]"
        with pytest.raises(PlacementError, match=f"{without} have no rack while others have one"):
            assign_replicas(brokers, partitions=1, replication_factor=1, pattern=FIRST)

    def test_growth_needs_as_many_brokers_as_replicas(self) -> None:
        with pytest.raises(PlacementError, match="number of live brokers, 1"):
            continue_assignment(without_racks(1), {0: (1, 2)}, partitions=1)


ids = st.lists(st.integers(0, 50), min_size=1, max_size=9, unique=True)
racks = st.sampled_from(["a", "b", "c", "d"])


@st.composite
def clusters(draw: st.DrawFn, *, rack_aware: bool | None = None) -> list[BrokerRack]:
    broker_ids = draw(ids)
    has_racks = draw(st.booleans()) if rack_aware is None else rack_aware
    return [BrokerRack(b, draw(racks) if has_racks else None) for b in broker_ids]


numbers = st.integers(0, 30)


@given(clusters(), numbers, numbers, numbers, st.data())
def test_leaders_are_even_within_one_and_replicas_distinct(
    brokers: list[BrokerRack], partitions: int, start: int, shift: int, data: st.DataObject
) -> None:
    assume(partitions > 0)
    factor = data.draw(st.integers(1, len(brokers)))
    placement = assign_replicas(
        brokers, partitions=partitions, replication_factor=factor, pattern=Pattern(start, shift)
    )
    known = {b.broker_id for b in brokers}
    assert list(placement) == list(range(partitions))
    for replicas in placement.values():
        assert len(replicas) == factor
        assert len(set(replicas)) == factor
        assert known.issuperset(replicas)
    led = Counter(dict.fromkeys(known, 0))
    led.update(replicas[0] for replicas in placement.values())
    assert max(led.values()) - min(led.values()) <= 1


@given(clusters(rack_aware=True), numbers, numbers, st.data())
def test_replicas_cover_as_many_racks_as_there_are(
    brokers: list[BrokerRack], start: int, shift: int, data: st.DataObject
) -> None:
    factor = data.draw(st.integers(1, len(brokers)))
    rack_of = {b.broker_id: b.rack for b in brokers}
    placement = assign_replicas(
        brokers, partitions=13, replication_factor=factor, pattern=Pattern(start, shift)
    )
    for replicas in placement.values():
        covered = {rack_of[r] for r in replicas}
        assert len(covered) == min(factor, len(set(rack_of.values())))


@given(clusters(rack_aware=False), st.integers(1, 20), st.integers(1, 20), st.data())
def test_growth_continues_creation(
    brokers: list[BrokerRack], n: int, m: int, data: st.DataObject
) -> None:
    """Creating n and growing by m equals creating n + m, whatever the creation drew."""
    factor = data.draw(st.integers(1, len(brokers)))
    pattern = Pattern(
        data.draw(st.integers(0, len(brokers) - 1)),
        data.draw(st.integers(0, max(0, len(brokers) - 2))),
    )
    at_once = assign_replicas(brokers, partitions=n + m, replication_factor=factor, pattern=pattern)
    created = {p: at_once[p] for p in range(n)}
    grown = continue_assignment(brokers, created, partitions=m)
    assert created | grown == at_once


@given(clusters(rack_aware=True), st.integers(1, 20), st.integers(1, 20), st.data())
def test_growth_across_racks_continues_the_leaders_and_explains_what_exists(
    brokers: list[BrokerRack], n: int, m: int, data: st.DataObject
) -> None:
    """Several shifts can explain the same few partitions, so followers may differ from creation."""
    factor = data.draw(st.integers(1, len(brokers)))
    pattern = Pattern(
        data.draw(st.integers(0, len(brokers) - 1)),
        data.draw(st.integers(0, max(0, len(brokers) - 2))),
    )
    at_once = assign_replicas(brokers, partitions=n + m, replication_factor=factor, pattern=pattern)
    created = {p: at_once[p] for p in range(n)}
    grown = continue_assignment(brokers, created, partitions=m)
    assert [r[0] for r in (created | grown).values()] == [r[0] for r in at_once.values()]
    explaining = [
        Pattern(pattern.start, shift)
        for shift in range(max(1, len(brokers) - 1))
        if assign_replicas(
            brokers,
            partitions=n + m,
            replication_factor=factor,
            pattern=Pattern(pattern.start, shift),
        )
        == created | grown
    ]
    assert explaining


@given(clusters(), st.integers(1, 10), st.data())
def test_growth_after_a_change_of_brokers_keeps_the_promises_of_placement(
    brokers: list[BrokerRack], n: int, data: st.DataObject
) -> None:
    """Whatever the existing partitions look like: distinct live replicas, leaders in turn."""
    factor = data.draw(st.integers(1, len(brokers)))
    replicas = st.lists(st.integers(0, 60), min_size=factor, max_size=factor, unique=True)
    existing = {p: tuple(data.draw(replicas)) for p in range(n)}
    grown = continue_assignment(brokers, existing, partitions=2 * len(brokers))
    assert list(grown) == list(range(n, n + 2 * len(brokers)))
    led = Counter(r[0] for r in grown.values())
    assert set(led.values()) == {2}
    assert set(led) == {b.broker_id for b in brokers}
    assert all(len(set(r)) == factor for r in grown.values())

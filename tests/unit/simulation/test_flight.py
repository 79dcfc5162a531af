"""Flights over small clusters whose answers can be worked out by hand."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest

from regent.model.errors import ConfigurationError
from regent.planning.snapshot import UNKNOWN, SnapshotTopic
from regent.simulation.conditions import Conditions
from regent.simulation.flight import fly
from regent.simulation.report import FlightStatus
from regent.simulation.scenario import (
    AddBroker,
    Kill,
    KillRack,
    Restart,
    Start,
    Step,
    Stop,
    Unclean,
    Wait,
)
from tests.unit.simulation.clusters import names, snapshot

RACKS = {1: "a", 2: "b", 3: "c"}
ROTATED = [(1, 2, 3), (2, 3, 1), (3, 1, 2)]
UNBALANCED = Conditions(balances_leaders=False)


def test_the_loss_of_one_of_three_racks_moves_its_leaders() -> None:
    report = fly(snapshot(RACKS, ROTATED), [KillRack("b")], Conditions(min_isr=2))
    (moment,) = report.moments
    assert report.start.leaders == {1: 1, 2: 1, 3: 1}
    assert moment.leaders == {1: 1, 3: 2}
    assert moment.dead == (2,)
    assert moment.is_safe
    assert (moment.moved, moment.interrupted, moment.under_replicated) == (1, 1, 3)
    assert report.status is FlightStatus.SAFE
    assert report.order is None


def test_a_death_is_noticed_when_the_session_ends_and_elections_take_their_time() -> None:
    conditions = Conditions(session_timeout_s=6, elections_per_s=2)
    report = fly(snapshot(RACKS, ROTATED), [Kill((2,))], conditions)
    assert report.moments[0].at_s == 6.5
    assert report.moments[0].interruption_s == 6.5
    assert report.outages == ()


def test_brokers_have_any_id_that_kafka_takes_and_the_controller_another_one() -> None:
    ids = (1_000_000_000, 1_000_000_002, 2**31 - 1)
    steps: list[Step] = [AddBroker(1_000_000_001, "d"), Restart((1_000_000_001, 2**31 - 1))]
    report = fly(snapshot(dict(zip(ids, "abc", strict=True)), [ids]), [*steps, Kill((ids[0],))])
    assert report.status is FlightStatus.SAFE
    assert report.moments[-1].leaders == {1_000_000_001: 0, 1_000_000_002: 1, 2**31 - 1: 0}


def test_the_only_replica_takes_its_partition_along_until_it_is_back() -> None:
    steps: list[Step] = [Kill((2,)), Wait(100), Start((2,))]
    report = fly(snapshot(RACKS, [(1,), (2,), (3,)]), steps, Conditions(session_timeout_s=10))
    killed, waited, back = report.moments
    assert names(killed.lost) == ["t-1"]
    assert names(killed.leaderless) == names(waited.leaderless) == ["t-1"]
    assert killed.interrupted == 0
    assert not killed.is_safe
    assert waited.is_safe
    assert names(back.regained) == ["t-1"]
    assert back.leaderless == ()
    (outage,) = report.outages
    assert str(outage.partition) == "t-1"
    assert outage.is_over
    assert outage.seconds == pytest.approx(110, abs=0.001)
    assert report.status is FlightStatus.LEADERLESS


def test_min_isr_is_the_patterns_before_the_snapshots_before_the_option() -> None:
    taken = replace(snapshot(RACKS, ROTATED), topics={"t": SnapshotTopic(3)})
    steps = [Kill((1,))]
    assert fly(taken, steps, Conditions(min_isr=1)).status is FlightStatus.BELOW_MIN_ISR
    by_pattern = Conditions(min_isr=3, min_isr_patterns=(("*", 3), ("t", 2)))
    assert fly(taken, steps, by_pattern).status is FlightStatus.SAFE
    with pytest.raises(ConfigurationError, match=r"no topic like 'x\*'"):
        fly(taken, steps, Conditions(min_isr_patterns=(("x*", 2),)))


def test_an_unclean_election_is_made_only_where_it_is_allowed_and_is_told() -> None:
    steps: list[Step] = [Kill((1,)), Kill((2,)), Start((1,)), Unclean(True)]
    report = fly(snapshot(RACKS, [(1, 2)]), steps)
    *_, before, after = report.moments
    assert names(before.leaderless) == ["t-0"]
    assert names(after.unclean) == names(after.regained) == ["t-0"]
    assert after.leaders == {1: 1, 3: 0}
    assert not after.is_safe


def test_unclean_elections_can_be_forbidden_again() -> None:
    steps: list[Step] = [Unclean(True), Unclean(False), Kill((1,)), Kill((2,)), Start((1,))]
    report = fly(snapshot(RACKS, [(1, 2)]), steps)
    assert names(report.moments[-1].leaderless) == ["t-0"]


def test_brokers_are_restarted_one_by_one() -> None:
    report = fly(
        snapshot(RACKS, ROTATED),
        [Restart((2, 1, 3))],
        Conditions(min_isr=2, restart_s=40, balances_leaders=False),
    )
    assert [moment.what for moment in report.moments] == [
        "restart 2: stopped",
        "restart 2: back",
        "restart 1: stopped",
        "restart 1: back",
        "restart 3: stopped",
        "restart 3: back",
    ]
    assert [moment.at_s for moment in report.moments] == [0, 40, 40, 80, 80, 120]
    assert [moment.dead for moment in report.moments] == [(2,), (), (1,), (), (3,), ()]
    assert all(moment.is_safe for moment in report.moments)
    assert report.moments[-1].under_replicated == 0
    assert report.status is FlightStatus.SAFE


def test_a_restart_says_at_which_step_it_is_not_safe() -> None:
    partitions = [(1, 2, 3), (2,), (1, 3)]
    report = fly(snapshot(RACKS, partitions), [Restart((1, 2))], Conditions(min_isr=2))
    one, one_back, two, two_back = report.moments
    assert names(one.newly_below_min_isr) == ["t-2"]
    assert names(one_back.below_min_isr) == ["t-1"]  # it has but one replica
    assert names(two.lost) == ["t-1"]
    assert names(two_back.regained) == ["t-1"]
    assert [moment.is_safe for moment in report.moments] == [False, True, False, False]


def test_a_broker_that_leads_alone_asks_three_times_before_it_stops() -> None:
    taken = snapshot(RACKS, [(1, 2)], isrs={0: (1,)})
    report = fly(taken, [Stop((1,))], UNBALANCED)
    assert report.moments[0].at_s == 15
    assert names(report.moments[0].lost) == ["t-0"]


def test_leaders_go_back_to_preferred_replicas_when_the_balance_is_checked() -> None:
    steps: list[Step] = [Kill((1,)), Start((1,)), Wait(600)]
    report = fly(snapshot(RACKS, ROTATED), steps)
    assert report.moments[1].leaders == {1: 0, 2: 2, 3: 1}
    assert report.moments[2].leaders == {1: 1, 2: 1, 3: 1}
    assert fly(snapshot(RACKS, ROTATED), steps, UNBALANCED).moments[2].leaders[1] == 0


def test_what_was_missed_is_copied_with_what_the_throttle_leaves() -> None:
    conditions = Conditions(session_timeout_s=20, written=300, throttle=200, restart_s=20)
    taken = snapshot(RACKS, [(1, 2), (2, 3), (3, 1)])
    # Each partition gets 100 bytes a second, each broker 200: nothing is left to catch up with.
    assert fly(taken, [Restart((1,))], conditions).moments[-1].under_replicated == 2
    faster = replace(conditions, throttle=600)
    report = fly(taken, [Restart((1,))], faster)
    assert report.moments[-1].at_s == 20 + 20 * 200 / (600 - 200)
    assert report.moments[-1].under_replicated == 0


def test_what_is_written_goes_to_large_partitions() -> None:
    taken = snapshot(RACKS, [(1, 2), (2, 3)], size=0)
    first, second = taken.partitions
    larger = replace(taken, partitions=(first, type(second)("t", 1, (2, 3), 2, (9, UNKNOWN))))
    conditions = Conditions(written=300, throttle=400, restart_s=10, balances_leaders=False)
    assert fly(larger, [Restart((1,))], conditions).moments[-1].at_s == 10
    assert fly(larger, [Restart((3,))], conditions).moments[-1].at_s == 10 + 10 * 300 / 100


def test_who_was_down_for_longer_has_more_to_copy() -> None:
    conditions = Conditions(written=300, throttle=600, restart_s=20, balances_leaders=False)
    taken = snapshot(RACKS, [(1, 2), (2, 3), (3, 1)])
    report = fly(taken, [Wait(50), Restart((1,)), Stop((1,)), Wait(40), Start((1,))], conditions)
    assert [moment.at_s for moment in report.moments] == [50, 50, 80, 80, 120, 140]


def test_only_who_has_caught_up_is_in_sync() -> None:
    taken = snapshot(RACKS, [(2, 1), (2, 3)], size=1)
    busy, idle = taken.partitions
    skewed = replace(taken, partitions=(type(busy)("t", 0, (2, 1), 2, (9, 9), (2, 1)), idle))
    conditions = Conditions(written=100, throttle=50)
    report = fly(skewed, [Restart((1,)), Restart((3,))], conditions)
    assert [moment.under_replicated for moment in report.moments] == [1, 1, 2, 1]


def test_a_leader_that_was_replaced_asks_for_no_isr() -> None:
    steps: list[Step] = [Kill((1,)), Kill((3,)), Start((1,)), Wait(600), Start((3,))]
    report = fly(snapshot(RACKS, [(1, 2, 3)]), steps)
    assert report.moments[2].leaders == {1: 0, 2: 1}
    assert report.moments[3].leaders == {1: 1, 2: 0}
    assert report.moments[4].under_replicated == 0


def test_what_comes_back_is_elected_at_the_rate_of_elections() -> None:
    report = fly(
        snapshot(RACKS, [(2,)] * 3),
        [Kill((2,)), Start((2,))],
        Conditions(session_timeout_s=10, elections_per_s=2),
    )
    assert [moment.at_s for moment in report.moments] == [10, 11.5]
    assert {outage.seconds for outage in report.outages} == {11.5}


def test_a_leader_that_is_the_same_again_has_not_moved() -> None:
    """Nobody has noticed the second death yet when the balance is checked."""
    steps: list[Step] = [Kill((1,)), Start((1,)), Kill((1,))]
    report = fly(snapshot(RACKS, ROTATED), steps, Conditions(session_timeout_s=400))
    assert [moment.moved for moment in report.moments] == [1, 0, 0]
    assert report.moments[2].leaders == report.moments[0].leaders


def test_what_was_below_min_isr_before_counts_as_long_as_it_is() -> None:
    taken = snapshot(RACKS, [(1, 2)], isrs={0: (1,)}, dead=(2,))
    conditions = Conditions(min_isr=2)
    waited = fly(taken, [Wait(1)], conditions)
    assert waited.moments[0].is_safe
    assert waited.status is FlightStatus.BELOW_MIN_ISR
    assert fly(taken, [Start((2,))], conditions).status is FlightStatus.SAFE


def test_a_snapshot_of_a_broken_cluster_is_the_beginning() -> None:
    taken = snapshot(RACKS, [(1, 2), (1, 3), (2, 3)], dead=(1,), isrs={0: (1,)}, leaders={0: -1})
    report = fly(taken, [Start((1,))])
    assert names(report.start.leaderless) == ["t-0"]
    assert report.start.leaders == {2: 1, 3: 1}  # t-1 was led by 1 in the snapshot
    assert report.moments[0].leaderless == ()
    assert report.status is FlightStatus.SAFE


def test_isrs_that_are_not_told_are_presumed_and_said_to_be() -> None:
    taken = snapshot(RACKS, [(1, 2), (2, 1)], dead=(1,), leaders={0: -1, 1: 2})
    untold = replace(
        taken,
        partitions=tuple(type(p)(*(p.topic, p.partition, p.replicas, p.leader, p.sizes))
                         for p in taken.partitions),
    )  # fmt: skip
    report = fly(untold, [Kill((2,))])
    assert names(report.start.leaderless) == ["t-0"]
    assert names(report.moments[0].lost) == ["t-1"]
    assert any("no ISR of 2 partitions" in sentence for sentence in report.assumptions)
    assert report.order is not None
    assert [each.broker for each in report.order.returns] == [1, 2]


def test_a_broker_that_joins_has_nothing_and_can_be_lost() -> None:
    report = fly(snapshot(RACKS, ROTATED), [AddBroker(4, "d"), KillRack("d")])
    assert report.moments[0].leaders == {1: 1, 2: 1, 3: 1, 4: 0}
    assert report.moments[1].is_safe
    assert report.moments[1].dead == (4,)


@pytest.mark.parametrize(
    ("steps", "message"),
    [
        ([Kill((9,))], "kill 9: there is no broker 9; there are 1, 2, 3"),
        ([Kill((1,)), Kill((1,))], "kill 1: broker 1 is dead at that point"),
        ([Start((1,))], "start 1: broker 1 is alive at that point"),
        ([Kill((1,)), Restart((1,))], "restart 1: broker 1 is dead"),
        ([Kill((1,)), Stop((1,))], "stop 1: broker 1 is dead"),
        ([KillRack("z")], "kill rack z: no living broker is in that rack; racks are a, b, c"),
        ([Kill((1,)), KillRack("a")], "kill rack a: no living broker"),
        ([AddBroker(1, None)], "add broker 1: the cluster has broker 1 already"),
    ],
)
def test_a_step_that_cannot_be_is_named(steps: list[Step], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        fly(snapshot(RACKS, ROTATED), steps)


def test_the_document_names_partitions_and_the_order() -> None:
    document = fly(snapshot(RACKS, [(1,), (2, 1)]), [Kill((1,))]).document()
    assert document["status"] == 5
    assert document["steps"][0]["lostLeader"] == ["t-0"]
    assert document["steps"][0]["leaders"] == {"2": 1, "3": 0}
    assert document["outages"][0]["isOver"] is False
    assert document["restartOrder"] == {
        "isBest": True,
        "brokers": [{"broker": 1, "regain": 1, "remaining": 0}],
        "bringNothingBack": [],
    }


def test_a_pattern_hides_no_topic_whose_min_isr_was_only_assumed() -> None:
    taken = snapshot({1: "a", 2: "a"}, [(1, 2)])
    other = msgspec.structs.replace(taken.partitions[0], topic="other")
    both = replace(taken, partitions=(other, *taken.partitions))
    told = "min.insync.replicas is 1 for 1 topics of which the snapshot does not tell it"
    by_pattern = Conditions(min_isr_patterns=(("t", 2),))
    assert told in fly(both, (Kill((1,)),), by_pattern).assumptions
    assert not any(
        "does not tell" in sentence
        for sentence in fly(taken, (Kill((1,)),), by_pattern).assumptions
    )

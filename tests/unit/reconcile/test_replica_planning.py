"""Which replicas partitions get and lose for another replication factor."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from regent.admin.replica_assignment import BrokerRack, Pattern, assign_replicas
from regent.controller.view import PartitionView, TopicView
from regent.reconcile.topics.replica_planning import (
    MOVING_AT_A_TIME,
    MOVING_IN_CLUSTER,
    ReplicaPlan,
    may_begin,
    plan_replicas,
)
from tests.unit.reconcile.requests import ID, partition, topic


def racks(**brokers: str) -> list[BrokerRack]:
    """``racks(b1="a")``: broker 1 is in rack a."""
    return [BrokerRack(int(name[1:]), rack) for name, rack in brokers.items()]


def without_racks(*broker_ids: int) -> list[BrokerRack]:
    return [BrokerRack(broker_id, None) for broker_id in broker_ids]


def plan(
    subject: TopicView,
    factor: int,
    live: list[BrokerRack],
    *,
    eligible: list[BrokerRack] | None = None,
    limit: int = 1000,
) -> ReplicaPlan:
    return plan_replicas(
        subject,
        factor=factor,
        live=live,
        eligible=live if eligible is None else eligible,
        limit=limit,
    )


def targets(subject: TopicView, factor: int, live: list[BrokerRack]) -> list[tuple[int, ...]]:
    return list(plan(subject, factor, live).targets.values())


def of(*partitions: PartitionView) -> TopicView:
    return TopicView("orders", ID, partitions)


class TestMore:
    def test_a_new_replica_goes_to_another_rack(self) -> None:
        live = racks(b1="a", b2="a", b3="b", b4="b", b5="c", b6="c")
        assert targets(topic((1, 3)), 3, live) == [(1, 3, 5)]
        assert targets(topic((1,)), 3, live) == [(1, 3, 5)]

    def test_new_replicas_spread_over_the_brokers(self) -> None:
        subject = topic(*[(1 + i % 3,) for i in range(30)])
        load = Counter(b for t in targets(subject, 2, without_racks(1, 2, 3)) for b in t)
        assert set(load.values()) == {20}

    def test_a_broker_that_shuts_down_gets_none(self) -> None:
        live = without_racks(1, 2, 3)
        found = plan(topic((1,), (3,)), 2, live, eligible=without_racks(1, 3))
        assert found == ReplicaPlan(targets={0: (1, 3), 1: (3, 1)})

    def test_partitions_for_which_there_are_too_few_brokers_are_named(self) -> None:
        found = plan(topic((1, 9), (1, 2)), 3, without_racks(1, 2))
        assert found == ReplicaPlan(targets={0: (1, 9, 2)}, unplaced=(1,))


class TestFewer:
    def test_then_one_that_is_not_in_sync(self) -> None:
        subject = of(partition(0, (1, 2, 3), (2, 3)))
        assert targets(subject, 2, without_racks(1, 2, 3)) == [(2, 3)]

    def test_of_those_that_are_not_alive_the_ones_in_sync_and_the_preferred_leader_go_last(
        self,
    ) -> None:
        subject = of(partition(0, (8, 9, 7, 6, 1), (6, 9, 1), leader=1))
        kept = {factor: targets(subject, factor, without_racks(1))[0] for factor in range(1, 5)}
        assert kept == {4: (8, 9, 6, 1), 3: (9, 6, 1), 2: (9, 1), 1: (1,)}

    def test_thousands_that_do_not_exist_are_no_work(self) -> None:
        """Somebody has written such a list into the topic's node."""
        subject = of(partition(0, tuple(range(10_000)), (1, 2), leader=2))
        assert targets(subject, 3, without_racks(1, 2, 3)) == [(1, 2, 3)]

    def test_the_preferred_leader_stays_and_brokers_with_many_replicas_are_relieved(self) -> None:
        subject = topic((1, 2, 3), (4, 2), (4, 2))
        assert targets(subject, 2, without_racks(1, 2, 3, 4)) == [(1, 3)]


class TestReassignmentsUnderWay:
    def test_they_are_left_alone(self) -> None:
        subject = of(
            partition(0, (3, 2, 1), (1, 2), adding=(3,), removing=(1,)),
            partition(1, (2, 1, 3), (2, 1), adding=(3,)),
        )
        assert plan(subject, 3, without_racks(1, 2, 3)) == ReplicaPlan()

    def test_no_more_than_some_at_a_time(self) -> None:
        moving = [partition(i, (1, 2), (1,), adding=(2,)) for i in range(5)]
        waiting = [partition(i, (1,)) for i in range(5, 50)]
        subject = of(*moving, *waiting)
        assert may_begin(subject, moving_elsewhere=0) == MOVING_AT_A_TIME - 5
        assert may_begin(subject, moving_elsewhere=MOVING_IN_CLUSTER - 10) == 5
        assert may_begin(subject, moving_elsewhere=MOVING_IN_CLUSTER) == 0
        begun = plan(subject, 2, without_racks(1, 2), limit=15).targets
        assert list(begun) == list(range(5, 20))
        full = of(*[partition(i, (1, 2), (1,), adding=(2,)) for i in range(40)])
        assert may_begin(full, moving_elsewhere=0) == 0
        assert plan(subject, 2, without_racks(1, 2), limit=0) == ReplicaPlan()


@st.composite
def clusters(draw: st.DrawFn) -> tuple[TopicView, list[BrokerRack], int]:
    """A topic as it is created, its brokers, and a factor that is possible."""
    count = draw(st.integers(2, 9))
    rack_count = draw(st.integers(0, 4))
    live = [
        BrokerRack(i, f"rack-{i % rack_count}" if rack_count else None) for i in range(1, count + 1)
    ]
    placed = assign_replicas(
        live,
        partitions=draw(st.integers(1, 60)),
        replication_factor=draw(st.integers(1, count)),
        pattern=Pattern(draw(st.integers(0, count - 1)), draw(st.integers(0, count))),
    )
    return topic(*placed.values()), live, draw(st.integers(1, count))


@given(clusters(), st.integers(0, 20))
def test_a_part_of_the_plan_is_its_beginning(
    drawn: tuple[TopicView, list[BrokerRack], int], limit: int
) -> None:
    subject, live, factor = drawn
    whole = plan(subject, factor, live).targets
    part = plan(subject, factor, live, limit=limit).targets
    assert list(part.items()) == list(whole.items())[:limit]


@given(clusters())
def test_the_plan_keeps_replicas_and_spreads_them_over_racks(
    drawn: tuple[TopicView, list[BrokerRack], int],
) -> None:
    subject, live, factor = drawn
    rack_of = dict(live)
    rack_count = len({rack for rack in rack_of.values() if rack is not None})
    found = plan(subject, factor, live)
    assert found.unplaced == ()
    for before in subject.partitions:
        after = found.targets.get(before.partition, before.replicas)
        assert len(after) == len(set(after)) == factor
        assert after[0] == before.replicas[0], "the preferred leader stays"
        kept = [replica for replica in after if replica in before.replicas]
        assert len(kept) == min(factor, len(before.replicas)), "no replica that stays is moved"
        assert kept == [replica for replica in before.replicas if replica in kept]
        if rack_count:
            assert len({rack_of[b] for b in after}) == min(factor, rack_count)


@given(clusters(), st.data())
def test_a_plan_that_was_begun_goes_on_to_the_same_replicas(
    drawn: tuple[TopicView, list[BrokerRack], int], data: st.DataObject
) -> None:
    """Whatever part of it has arrived, or is on its way."""
    subject, live, factor = drawn
    whole = plan(subject, factor, live).targets
    done = data.draw(st.integers(0, len(subject.partitions)))
    moving = data.draw(st.integers(done, len(subject.partitions)))

    def now(before: PartitionView) -> PartitionView:
        target = whole.get(before.partition)
        if target is None or before.partition >= moving:
            return before
        if before.partition < done:
            return partition(before.partition, target)
        adding = tuple(b for b in target if b not in before.replicas)
        removing = tuple(b for b in before.replicas if b not in target)
        return partition(
            before.partition, (*target, *removing), before.isr, adding=adding, removing=removing
        )

    halfway = of(*map(now, subject.partitions))
    rest = plan(halfway, factor, live).targets
    final = {p.partition: rest.get(p.partition, p.target_replicas) for p in halfway.partitions}
    assert final == {p.partition: whole.get(p.partition, p.replicas) for p in subject.partitions}

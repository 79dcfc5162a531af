"""Flights agree with the rules of leader election, stated here once more in a few lines."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import given, settings
from hypothesis import strategies as st

from regent.model.partition import TopicPartition
from regent.planning.snapshot import Snapshot
from regent.simulation.conditions import Conditions
from regent.simulation.flight import fly
from regent.simulation.report import Moment
from regent.simulation.scenario import Kill, Start, Step
from tests.unit.simulation.clusters import snapshot

BROKERS = (1, 2, 3, 4)

replicas = st.lists(st.sampled_from(BROKERS), min_size=1, max_size=3, unique=True).map(tuple)
clusters = st.lists(replicas, min_size=1, max_size=6).map(
    lambda partitions: snapshot(dict.fromkeys(BROKERS, "a"), partitions)
)


@dataclass
class Rules:
    """One partition, as KafkaController treats it.

    A dead broker leaves the ISR unless it is the last member. A leader that dies is followed by the
    first live replica of the ISR. A broker that returns leads what has no leader and whose ISR it
    is in; it joins the ISR of whatever has a leader.
    """

    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    leader: int

    def died(self, broker: int, alive: set[int]) -> None:
        if broker not in self.isr:
            return
        self.isr = tuple(member for member in self.isr if member != broker) or (broker,)
        if self.leader == broker:
            self._elect(alive)

    def returned(self, broker: int, alive: set[int]) -> None:
        if self.leader == -1:
            self._elect(alive)
        for replica in self.replicas:
            if self.leader != -1 and replica in alive and replica not in self.isr:
                self.isr += (replica,)

    def _elect(self, alive: set[int]) -> None:
        self.leader = next((r for r in self.replicas if r in alive and r in self.isr), -1)


def check(moment: Moment, partitions: list[Rules], min_isr: int) -> None:
    def those(wanted: list[bool]) -> tuple[TopicPartition, ...]:
        return tuple(TopicPartition("t", i) for i, is_wanted in enumerate(wanted) if is_wanted)

    assert moment.leaderless == those([p.leader == -1 for p in partitions])
    assert moment.below_min_isr == those(
        [p.leader != -1 and len(p.isr) < min_isr for p in partitions]
    )
    assert moment.under_replicated == sum(len(p.isr) < len(p.replicas) for p in partitions)
    assert moment.leaders == {
        broker: sum(p.leader == broker for p in partitions)
        for broker in BROKERS
        if broker not in moment.dead
    }


@settings(max_examples=40, deadline=None)
@given(clusters, st.lists(st.sampled_from(BROKERS), max_size=8))
def test_deaths_and_returns(cluster: Snapshot, toggled: list[int]) -> None:
    """Each broker that is named dies if it is alive, and is started if it is dead."""
    alive = set(BROKERS)
    rules = [Rules(p.replicas, p.replicas, p.leader) for p in cluster.partitions]
    steps: list[Step] = []
    for broker in toggled:
        steps.append(Kill((broker,)) if broker in alive else Start((broker,)))
        alive ^= {broker}
    report = fly(cluster, steps, Conditions(min_isr=2, balances_leaders=False))
    check(report.start, rules, 2)
    alive = set(BROKERS)
    for broker, moment in zip(toggled, report.moments, strict=True):
        alive ^= {broker}
        for partition in rules:
            if broker in alive:
                partition.returned(broker, alive)
            else:
                partition.died(broker, alive)
        check(moment, rules, 2)


@settings(max_examples=25, deadline=None)
@given(
    clusters,
    st.lists(st.sampled_from(BROKERS), max_size=4, unique=True).map(tuple),
    st.permutations(BROKERS),
)
def test_without_dead_brokers_everything_is_led_and_in_sync(
    cluster: Snapshot, together: tuple[int, ...], order: list[int]
) -> None:
    """Brokers die together, and return in any order."""
    steps: list[Step] = [Kill(together)] if together else []
    steps += [Start((broker,)) for broker in order if broker in together]
    report = fly(cluster, steps)
    last = report.moments[-1] if report.moments else report.start
    assert last.dead == ()
    assert last.leaderless == ()
    assert last.under_replicated == 0
    assert report.order is None
    assert all(outage.is_over for outage in report.outages)


@settings(max_examples=25, deadline=None)
@given(clusters, st.lists(st.sampled_from(BROKERS), min_size=1, max_size=4, unique=True))
def test_the_advice_brings_back_what_it_says(cluster: Snapshot, dying: list[int]) -> None:
    kills: list[Step] = [Kill((broker,)) for broker in dying]
    advised = fly(cluster, kills).order
    if advised is None:
        return
    starts: list[Step] = [Start((each.broker,)) for each in advised.returns]
    moments = fly(cluster, kills + starts).moments[len(kills) :]
    assert [len(moment.regained) for moment in moments] == [r.partitions for r in advised.returns]
    assert [len(moment.leaderless) for moment in moments] == [r.remaining for r in advised.returns]
    assert moments[-1].leaderless == ()

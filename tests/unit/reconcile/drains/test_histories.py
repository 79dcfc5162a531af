"""Drains of any cluster, in any order of arrivals, and back again."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from regent.resources.broker_drain_status import DrainPhase
from tests.unit.reconcile.drains.draining import Cluster, Drain, Replicas

BROKERS = range(1, 7)
RACKS = ("a", "a", "b", "b", "c", "c")

replicas = st.lists(st.sampled_from(BROKERS), min_size=1, max_size=3, unique=True).map(tuple)
topics = st.dictionaries(
    st.sampled_from(["t", "u", "v"]), st.lists(replicas, min_size=1, max_size=6), min_size=1
)


def racks_of(each: Replicas) -> int:
    return len({RACKS[b - 1] for b in each})


@settings(max_examples=150, deadline=None)
@given(
    topics=topics,
    drained=st.sets(st.sampled_from(BROKERS), min_size=1, max_size=2),
    racked=st.booleans(),
    total=st.integers(1, 4),
    choices=st.randoms(use_true_random=False),
)
def test_it_ends_drained_or_refused_keeps_what_it_must_and_can_be_undone(
    topics: Mapping[str, list[Replicas]],
    drained: set[int],
    racked: bool,
    total: int,
    choices: Random,
) -> None:
    cluster = Cluster(topics, brokers=len(BROKERS), racks=RACKS if racked else ())
    drain = Drain(cluster, *sorted(drained), concurrency={"total": total})
    while True:
        drain.settle()
        moving = sorted(cluster.moving())
        assert len(moving) <= total
        if not moving:
            break
        cluster.arrive(choices.choice(moving))
    if drain.is_in(DrainPhase.REFUSED):
        assert cluster.asked == []
        assert {each.reason for each in drain.status.blockers} == {"RacksLost"}
        return
    assert drain.is_in(DrainPhase.DRAINED)
    assert cluster.on(*drained) == 0
    for name, before in topics.items():
        for origin, now in zip(before, cluster.replicas(name), strict=True):
            assert len(set(now)) == len(origin)
            assert [b for b in now if b in origin] == [b for b in origin if b not in drained]
            assert not racked or racks_of(now) >= racks_of(origin)
    assert len({tp for tp, _ in cluster.asked}) == len(cluster.asked), "nothing moves twice"
    drain.change(desiredState="Undone")
    drain.finish()
    assert drain.is_in(DrainPhase.UNDONE)
    assert {name: cluster.replicas(name) for name in topics} == topics

"""Small random clusters, and the exact optimum of their plans by trying every placement."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from regent_rebalance.errors import InfeasibleGoalsError
from regent_rebalance.goals import DEFAULT_GOALS, Goals
from regent_rebalance.plan import Plan
from regent_rebalance.problem import Problem
from regent_rebalance.snapshot import Brokers, Rows, Snapshot, snapshot_of

patient = settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
"""As many examples as the profile has. Many clusters have no plan, and drawing one takes long."""


def cluster(
    racks: list[str | None],
    partitions: list[list[int]],
    *,
    alive: list[bool] | None = None,
    leaders: list[int] | None = None,
    sizes: list[int] | None = None,
) -> Snapshot:
    """Brokers 1, 2, ... in these racks; topic t0 has half of the partitions, t1 the others."""
    half = (len(partitions) + 1) // 2
    return snapshot_of(
        Brokers.of(list(range(1, len(racks) + 1)), racks, alive=alive),
        Rows(
            topic=[f"t{int(p >= half)}" for p in range(len(partitions))],
            partition=[p % half for p in range(len(partitions))],
            lengths=[len(replicas) for replicas in partitions],
            replicas=[broker for replicas in partitions for broker in replicas],
            leader=leaders or [replicas[0] for replicas in partitions],
            sizes=None
            if sizes is None
            else [size for size, p in zip(sizes, partitions, strict=True) for _ in p],
        ),
    )


@st.composite
def clusters(draw: st.DrawFn, *, brokers: int = 8, partitions: int = 10) -> Snapshot:
    """Some brokers, in racks or not, some of them dead; replication factors 1 to 4."""
    count = draw(st.integers(2, brokers))
    names = draw(st.sampled_from([("a",), ("a", "b"), ("a", "b", "c"), ("a", "b", "c", "d")]))
    racks = draw(st.lists(st.sampled_from(names), min_size=count, max_size=count))
    alive = [draw(st.integers(0, 9)) > 0 for _ in range(count)]
    lists = draw(
        st.lists(
            st.permutations(range(1, count + 1)).flatmap(
                lambda order: st.integers(1, min(4, count)).map(lambda n: order[:n])
            ),
            min_size=1,
            max_size=partitions,
        )
    )
    leaders = [draw(st.sampled_from([-1, *replicas])) for replicas in lists]
    sizes = draw(st.lists(st.integers(0, 100), min_size=len(lists), max_size=len(lists)))
    return cluster(list(racks), lists, alive=alive, leaders=leaders, sizes=sizes)


@st.composite
def goals_for(draw: st.DrawFn, snapshot: Snapshot) -> Goals:
    """Goals that may or may not be met."""
    ids = snapshot.brokers.ids.tolist()
    some = st.lists(st.sampled_from(ids), max_size=1, unique=True)
    names = draw(st.lists(st.sampled_from(DEFAULT_GOALS), unique=True))
    drained, excluded = draw(some), draw(some)
    factors = draw(st.dictionaries(st.sampled_from(snapshot.topics), st.integers(1, 4), max_size=2))
    pinned = draw(st.lists(st.sampled_from(snapshot.topics), max_size=1))
    dead = [b for b, alive in zip(ids, snapshot.brokers.alive.tolist(), strict=True) if not alive]
    hosts = {
        ids[broker]
        for p in range(snapshot.partitions)
        if snapshot.topics[snapshot.topic[p]] in pinned
        for broker in snapshot.replicas[snapshot.offsets[p] : snapshot.offsets[p + 1]]
    }
    if hosts & {*drained, *dead}:
        pinned = []
    return Goals(
        names=tuple(name for name in DEFAULT_GOALS if name in names),
        replica_balance=draw(st.sampled_from([1.0, 1.1, 1.5])),
        leader_balance=draw(st.sampled_from([1.0, 1.1, 1.5])),
        max_replicas=draw(st.one_of(st.none(), st.integers(1, 20))),
        drained=tuple(drained),
        excluded=tuple(excluded),
        pinned=tuple(pinned),
        replication_factor={t: n for t, n in factors.items() if t not in pinned},
    )


def executed(snapshot: Snapshot, plan: Plan) -> Snapshot:
    """The cluster once the plan is carried out."""
    ids, ends = snapshot.brokers.ids, snapshot.offsets
    names = [snapshot.topics[t] for t in snapshot.topic]
    numbers = snapshot.partition.tolist()
    now = {
        (names[p], numbers[p]): ids[snapshot.replicas[ends[p] : ends[p + 1]]].tolist()
        for p in range(snapshot.partitions)
    }
    leader = {
        (names[p], numbers[p]): -1
        if snapshot.leader[p] < 0
        else int(ids[snapshot.replicas[ends[p] + snapshot.leader[p]]])
        for p in range(snapshot.partitions)
    }
    size = dict(zip(now, snapshot.copy_bytes().tolist(), strict=True))
    changed = list(zip(plan.changes.topic, plan.changes.partition.tolist(), strict=True))
    before, after = plan.changes.lists()
    for name, old, new in zip(changed, before, after, strict=True):
        assert now[name] == old
        now[name], leader[name] = new, new[0]
    b = snapshot.brokers
    return snapshot_of(
        b,
        Rows(
            topic=[topic for topic, _ in now],
            partition=[number for _, number in now],
            lengths=[len(replicas) for replicas in now.values()],
            replicas=[broker for replicas in now.values() for broker in replicas],
            leader=list(leader.values()),
            sizes=[size[name] for name, replicas in now.items() for _ in replicas],
            bytes_in=snapshot.bytes_in,
            bytes_out=snapshot.bytes_out,
        ),
    )


def legal_sets(problem: Problem, partition: int) -> Iterator[tuple[int, tuple[int, ...]]]:
    """How many replicas are new, and where all are: every placement that is allowed."""
    old = set(
        problem.replicas[problem.offsets[partition] : problem.offsets[partition + 1]].tolist()
    )
    usable = [
        b for b in range(problem.brokers) if problem.keeps[b] and (b in old or problem.takes[b])
    ]
    living = np.array(sorted(b for b in old if problem.keeps[b]), dtype=np.int64)
    kept = np.bincount(problem.rack[living], minlength=problem.racks)
    in_rack = np.bincount(problem.rack[problem.keeps], minlength=problem.racks)
    factor, limit = int(problem.factor[partition]), 1
    while np.minimum(in_rack, limit).sum() < factor and limit < factor:
        limit += 1
    allowed = np.full(problem.racks, limit) if problem.repairs_racks else np.maximum(limit, kept)
    for chosen in itertools.combinations(usable, factor):
        used = np.bincount(problem.rack[list(chosen)], minlength=problem.racks)
        # Brokers that stay keep as many racks as they have, unless there are to be fewer replicas.
        keeps_racks = kept.sum() > factor or (used > 0).sum() >= (kept > 0).sum()
        if (used <= allowed).all() and keeps_racks:
            yield len(set(chosen) - old), chosen


def optimum(problem: Problem) -> int:
    """The least moves and penalties together, by dynamic programming over brokers' loads.

    Raises InfeasibleGoalsError if a partition fits nowhere.
    """
    best: dict[tuple[int, ...], int] = {(0,) * problem.brokers: 0}
    for partition in range(problem.partitions):
        choices = list(legal_sets(problem, partition))
        if not choices:
            raise InfeasibleGoalsError([f"partition {partition} fits nowhere"])
        following: dict[tuple[int, ...], int] = {}
        for load, cost in best.items():
            for new, chosen in choices:
                reached = list(load)
                for broker in chosen:
                    reached[broker] += 1
                key = tuple(reached)
                if cost + new < following.get(key, 1 << 60):
                    following[key] = cost + new
        best = following
    return min(cost + problem.costs.penalty(np.array(load)) for load, cost in best.items())

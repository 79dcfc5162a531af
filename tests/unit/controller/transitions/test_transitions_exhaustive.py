"""Every pair of states through the real machines, and every small election.

The tables of legal pairs are written out here once more, so that an edit of the core's tables has
to be made twice.
"""

from __future__ import annotations

from itertools import chain, combinations, permutations, product

import pytest

from regent.controller.state.states import PartitionState as P
from regent.controller.state.states import ReplicaState as R
from regent.controller.transitions import election
from regent.controller.transitions.election import ElectionStrategy, UncleanElection
from regent.model.partition import LeaderAndIsr, TopicPartition
from tests.unit.controller.world import World, leader_and_isr, stop_replica

TP = TopicPartition("t", 0)

LEGAL_FOR_PARTITIONS = {
    (P.NON_EXISTENT, P.NEW),
    *product([P.NEW, P.ONLINE, P.OFFLINE], [P.ONLINE, P.OFFLINE]),
    (P.OFFLINE, P.NON_EXISTENT),
}
LEGAL_FOR_REPLICAS = {
    (R.NON_EXISTENT, R.NEW),
    *product([R.NEW, R.ONLINE, R.OFFLINE, R.DELETION_INELIGIBLE], [R.ONLINE, R.OFFLINE]),
    (R.OFFLINE, R.DELETION_STARTED),
    (R.DELETION_STARTED, R.DELETION_SUCCESSFUL),
    (R.OFFLINE, R.DELETION_INELIGIBLE),
    (R.DELETION_STARTED, R.DELETION_INELIGIBLE),
    (R.DELETION_SUCCESSFUL, R.NON_EXISTENT),
}


@pytest.mark.parametrize(("before", "target"), list(product(P, P)))
def test_partition_transitions(before: P, target: P) -> None:
    world = World()
    world.start_broker(1, 2)
    world.create_topic("t", {0: (1, 2)})
    if before in (P.ONLINE, P.OFFLINE):
        world.set_state(TP, 1, (1, 2), leader_epoch=5)
    active = world.load()
    active.context.set_partition_state(TP, before)
    tree = world.zookeeper.dump()

    failures = world.run(active.partitions.handle_state_changes([TP], target, election.OFFLINE))

    is_legal = (before, target) in LEGAL_FOR_PARTITIONS
    reported = world.log.errors("Illegal partition transition")
    assert active.context.partition_state(TP) is (target if is_legal else before)
    assert list(failures) == ([] if is_legal else [TP])
    assert [r["target"] for r in reported] == ([] if is_legal else [target.name])
    if not is_legal or target is not P.ONLINE:
        assert world.zookeeper.dump() == tree, "only elections write"
        assert world.driver.sent == [], "only elections send"


@pytest.mark.parametrize(("before", "target"), list(product(R, R)))
@pytest.mark.parametrize("has_leadership", [True, False])
def test_replica_transitions(before: R, target: R, has_leadership: bool) -> None:
    world = World()
    world.start_broker(1, 2)
    world.create_topic("t", {0: (1, 2)})
    if has_leadership:
        world.set_state(TP, 1, (1, 2), leader_epoch=5)
    active = world.load()
    active.context.set_replica_state(2, TP, before)

    world.run(active.replicas.handle_state_changes({2: [TP]}, target))

    is_legal = (before, target) in LEGAL_FOR_REPLICAS
    reported = world.log.errors("Illegal replica transition")
    assert active.context.replica_state(2, TP) is (target if is_legal else before)
    assert [r["target"] for r in reported] == ([] if is_legal else [target.name])

    received = leader_and_isr(world.driver.sent)
    stopped = stop_replica(world.driver.sent)
    epoch = -1 if not has_leadership else 6 if target is R.OFFLINE else 5
    if not is_legal:
        assert world.driver.sent == []
    elif target is R.NEW:
        assert received == ({2: {TP: True}} if has_leadership else {})
    elif target is R.ONLINE:
        told = has_leadership and before is not R.NEW
        assert received == ({2: {TP: False}} if told else {})
    elif target is R.OFFLINE:
        assert stopped == [(2, TP, epoch, False)]
        assert received == ({1: {TP: False}} if has_leadership else {})
    elif target is R.DELETION_STARTED:
        assert stopped == [(2, TP, epoch, True)]
    else:
        assert world.driver.sent == [], "these live in memory only"
    if target is not R.OFFLINE:
        assert world.state(TP) == (LeaderAndIsr(1, 5, (1, 2), 0, 0) if has_leadership else None)


REPLICAS = (1, 2, 3)
SUBSETS = list(chain.from_iterable(combinations(REPLICAS, n) for n in range(len(REPLICAS) + 1)))
ISRS = [isr for n in (1, 2, 3) for isr in permutations(REPLICAS, n)]
PARTITION_OF = {isr: TopicPartition("t", i) for i, isr in enumerate(ISRS)}
STRATEGIES = [
    election.OFFLINE,
    election.OFFLINE_ALLOW_UNCLEAN,
    election.REASSIGN,
    election.PREFERRED,
    election.CONTROLLED_SHUTDOWN,
]


def expected_election(
    strategy: ElectionStrategy, isr: tuple[int, ...], online: list[int], leaving: list[int]
) -> tuple[int, tuple[int, ...], list[int]] | None:
    """Leader, ISR and the receivers of LeaderAndIsr by the rules of the four strategies."""
    live = [r for r in REPLICAS if r in online and r not in leaving]
    reachable = [r for r in REPLICAS if r in online]
    match strategy.name:
        case "offline":
            clean = [r for r in live if r in isr]
            if clean:
                return clean[0], tuple(r for r in isr if r in live), live
            last = [r for r in reachable if r in isr]  # all of them are shutting down
            if last:
                told = [r for r in reachable if r in live or r in last]
                return last[0], tuple(r for r in isr if r in reachable), told
            if strategy.unclean is UncleanElection.ALWAYS and live:
                return live[0], (live[0],), live
            return None
        case "controlled_shutdown":
            staying = [r for r in reachable if r in isr and r not in leaving]
            rest = tuple(r for r in isr if r not in leaving)
            return (staying[0], rest, reachable) if staying else None
        case "preferred":
            wins = REPLICAS[0] in live and REPLICAS[0] in isr
            return (REPLICAS[0], isr, reachable) if wins else None
        case _:
            first = [r for r in live if r in isr]
            return (first[0], isr, reachable) if first else None


@pytest.mark.parametrize(
    "strategy",
    STRATEGIES,
    ids=lambda strategy: f"{strategy.name}, {strategy.unclean.value}",
)
def test_every_election_among_three_replicas(strategy: ElectionStrategy) -> None:
    """All ISRs in all orders, all sets of live brokers, all sets of brokers shutting down."""
    for online, leaving in product(SUBSETS, SUBSETS):
        if any(broker_id not in online for broker_id in leaving):
            continue
        world = World()
        world.start_broker(*online)
        world.create_topic("t", {tp.partition: REPLICAS for tp in PARTITION_OF.values()})
        for isr, tp in PARTITION_OF.items():
            world.set_state(tp, isr[0], isr, leader_epoch=7)
        active = world.load()
        for broker_id in leaving:
            active.context.mark_shutting_down(broker_id)
        before = dict(active.context.partition_states)

        failures = world.run(
            active.partitions.handle_state_changes(PARTITION_OF.values(), P.ONLINE, strategy)
        )

        sent = world.driver.sent
        received = leader_and_isr(sent)
        announced = [tp for requests in sent for tp in requests.update_metadata]
        for isr, tp in PARTITION_OF.items():
            case = (strategy.name, isr, online, leaving)
            stored = world.state(tp)
            assert stored is not None
            expected = expected_election(strategy, isr, list(online), list(leaving))
            receivers = [b for b in REPLICAS if tp in received.get(b, {})]
            if expected is None:
                assert tp in failures, case
                assert active.context.partition_state(tp) is before[tp], case
                assert stored.leader_epoch == 7, case
                assert receivers == [], case
                assert tp not in announced, case
                continue
            leader, new_isr, told = expected
            assert tp not in failures, case
            assert active.context.partition_state(tp) is P.ONLINE, case
            assert (stored.leader, stored.isr) == (leader, new_isr), case
            assert (stored.leader_epoch, stored.controller_epoch) == (8, 1), case
            assert active.context.cluster.leadership[tp] == stored, case
            assert receivers == told, case
            assert tp in announced, case
        for requests in sent:
            assert set(requests.update_metadata_receivers) == set(online)
            assert not any(chain(*(entries.values() for entries in received.values())))

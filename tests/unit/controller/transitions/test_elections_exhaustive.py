"""Every election among three replicas, through the real machine."""

from __future__ import annotations

from itertools import chain, combinations, permutations, product

import pytest

from regent.controller.state.states import PartitionState as P
from regent.controller.transitions import election
from regent.controller.transitions.election import ElectionStrategy, UncleanElection
from regent.model.partition import TopicPartition
from tests.unit.controller.world import World, leader_and_isr

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
        announced = [tp for requests in sent for tp in requests.partitions]
        for isr, tp in PARTITION_OF.items():
            case = (strategy.name, isr, online, leaving)
            stored = world.state_of(tp)
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

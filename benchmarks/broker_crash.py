"""Broker crash: from the end of a registration until all live brokers know the new leaders.

Topics of one partition with two replicas each on five brokers. One broker's registration vanishes:
a fifth of the partitions needs a new leader, another fifth loses a follower.
"""

from typing import NamedTuple

from rich.console import Console

from benchmarks.arena import SMALLEST_ENTRY_BYTES
from benchmarks.benchmark import Benchmark, Options, Result
from benchmarks.changes import Change, Figures, Setting, compare
from benchmarks.cluster import Cluster
from benchmarks.contenders import Contender
from benchmarks.delivery import Delivery
from benchmarks.errors import BenchmarkError
from benchmarks.stub.exchanges import Exchange, StubStatus
from benchmarks.zookeeper import Election
from regent.model.partition import TopicPartition

CRASHED = 5
REPLICATION_FACTOR = 2


class Crash(NamedTuple):
    """What was seen of a crash."""

    deleted_at: int
    exchanges: list[Exchange]


class BrokerCrash(Change[Crash]):
    """The registration of one broker vanishes."""

    def reset(self) -> None:
        """The broker lives; its partitions are led by their first replica, all are in sync."""
        self.arena.register_missing()
        self.arena.restore(self._replicas())

    def happen(self, contender: Contender) -> Crash:
        """Delete the registration and wait for a LeaderAndIsr of each partition concerned."""
        arena = self.arena
        hosted = self._replicas()
        needed = {
            broker_id: sum(broker_id in replicas for replicas in hosted.values())
            for broker_id in arena.cluster.broker_ids
            if broker_id != CRASHED
        }
        deleted_at = arena.session.deregister(CRASHED)

        def arrived(status: StubStatus) -> bool:
            return all(
                status.leader_and_isr_partitions[broker_id] >= count
                and status.update_metadata_bytes[broker_id] >= SMALLEST_ENTRY_BYTES * len(hosted)
                for broker_id, count in needed.items()
            )

        arena.await_requests(contender, arrived)
        return Crash(deleted_at, arena.stubs.take())

    def judge(self, seen: Crash, election: Election) -> Figures:
        arena = self.arena
        del arena.broker_epochs[CRASHED]
        hosted = self._replicas()
        states = arena.session.states(list(hosted))
        for tp, state in states.items():
            if state.leader == CRASHED or state.isr != tuple(r for r in hosted[tp] if r != CRASHED):
                raise BenchmarkError(f"{tp} is left with {state}")
        delivery = Delivery(seen.exchanges, election, arena.broker_epochs)
        led = {tp: state for tp, state in states.items() if hosted[tp][0] == CRASHED}
        leaders_known_at = delivery.leaders_known_at(led, hosted)
        all_known_at = delivery.leaders_known_at(states, hosted)

        def since(at: int) -> float:
            return (at - seen.deleted_at) / 1e9

        return Figures(
            since(leaders_known_at),
            {
                "crash to first request": since(delivery.first_request_at),
                "crash to all ISRs known, too": since(all_known_at),
                "requests, number": delivery.requests,
                "requests, MB": delivery.request_bytes / 1e6,
            },
        )

    def _replicas(self) -> dict[TopicPartition, tuple[int, ...]]:
        """Of the partitions that the crashed broker hosts."""
        return {
            tp: partition.replicas
            for tp, partition in self.arena.cluster.states.items()
            if CRASHED in partition.replicas
        }


def run(options: Options, console: Console) -> Result:
    """Let the broker crash in turns."""
    cluster = Cluster(options.size, partitions_per_topic=1, replication_factor=REPLICATION_FACTOR)
    setting = Setting(cluster, BrokerCrash, compared="crash to new leaders known to all")
    return compare(setting, options, console)


BENCHMARK = Benchmark(
    name="broker-crash",
    summary="From the end of a broker's registration until all others know the new leaders.",
    unit="topics of one partition",
    default_size=25_000,
    run=run,
    default_samples=1,
)

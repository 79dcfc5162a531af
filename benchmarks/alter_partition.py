"""AlterPartition: leaders ask the controller for ISR changes, at two rates.

Followers leave ISRs and return, one partition after the other. With inter.broker.protocol.version
3.9 leaders ask in version 3, with topic ids and broker epochs.
"""

import itertools
import random
from collections.abc import Mapping
from typing import NamedTuple

from rich.console import Console

from benchmarks.arena import Arena
from benchmarks.asking.alter_partition import API_KEY, VERSION
from benchmarks.asking.connection import ControllerConnection, find_controller
from benchmarks.asking.leaders import Leader, LedPartition, Load, ask_for_changes
from benchmarks.benchmark import Benchmark, Options, Result
from benchmarks.changes import Change, Figures, Setting, compare
from benchmarks.cluster import NEWEST_PROTOCOL_VERSION, Cluster
from benchmarks.contenders import Contender
from benchmarks.delivery import Delivery
from benchmarks.errors import BenchmarkError
from benchmarks.stub.exchanges import Exchange
from benchmarks.zookeeper import Election
from regent.model.partition import TopicPartition

MOST_PARTITIONS = 10_000
RATES = (1_000, 10_000)
"""ISR changes that come up in a second, at all leaders together."""
COMPARED = RATES[0]
_NS_IN_MS = 1e6
_SEED = 1


class Asked(NamedTuple):
    """What was seen.

    Attributes:
        loads: By rate.
        led: The partitions as their leaders were answered last.
    """

    loads: dict[int, Load]
    led: list[LedPartition]
    exchanges: list[Exchange]


class IsrChanges(Change[Asked]):
    """Leaders ask for ISR changes at each of the rates."""

    def __init__(self, arena: Arena) -> None:
        super().__init__(arena)
        self._replicas: dict[TopicPartition, tuple[int, ...]] = {
            tp: partition.replicas for tp, partition in arena.cluster.states.items()
        }
        self._led: list[LedPartition] = []
        self._leaders: list[Leader] = []

    def reset(self) -> None:
        """Everything is in sync."""
        self.arena.restore(self._replicas)

    def prepare(self, election: Election) -> None:
        """The leaders connect to the controller that they were sent last."""
        self._led = self._partitions()
        exchanges = self.arena.stubs.take()
        self._leaders = [
            self._leader(broker_id, exchanges, election)
            for broker_id in self.arena.cluster.broker_ids
        ]

    def happen(self, contender: Contender) -> Asked:
        """Ask, to the last answer, and wait for what brokers are sent."""
        arena = self.arena
        turns = itertools.cycle(self._led)
        loads: dict[int, Load] = {}
        for rate in RATES:
            loads[rate] = ask_for_changes(
                self._leaders,
                itertools.islice(turns, arena.options.size),
                arena.broker_epochs,
                rate=rate,
                timeout_s=arena.options.timeout_s,
            )
            arena.await_requests(contender, lambda _: True)
        for leader in self._leaders:
            leader.connection.close()
        return Asked(loads, self._led, arena.stubs.take())

    def _partitions(self) -> list[LedPartition]:
        """The partitions as ZooKeeper has them, in no order: a broker keeps them in a hash map."""
        states = self.arena.session.states(list(self._replicas))
        partitions = []
        for tp, state in states.items():
            topic_id = self.arena.cluster.topic_id(tp.topic)
            assert topic_id is not None
            partitions.append(
                LedPartition(
                    tp,
                    (topic_id.bytes, tp.partition),
                    state.leader,
                    self._replicas[tp],
                    state.leader_epoch,
                    state.isr,
                    state.partition_epoch,
                )
            )
        random.Random(_SEED).shuffle(partitions)
        return partitions

    def _leader(self, broker_id: int, exchanges: list[Exchange], election: Election) -> Leader:
        address = find_controller(exchanges, election, broker_id)
        timeout_s = self.arena.options.timeout_s
        connection = ControllerConnection(broker_id, address, timeout_s=timeout_s)
        connection.require_version(API_KEY, VERSION)
        return Leader(broker_id, connection)

    def judge(self, seen: Asked, election: Election) -> Figures:
        arena = self.arena
        states = arena.session.states(list(self._replicas))
        for each in seen.led:
            state = states[each.tp]
            stored = (state.leader, state.leader_epoch, state.isr, state.partition_epoch)
            if stored != (each.leader, each.leader_epoch, each.isr, each.partition_epoch):
                raise BenchmarkError(f"{each} was answered, {state} is stored")
        changed = {each.tp: states[each.tp] for each in seen.led if each.partition_epoch}
        delivery = Delivery(seen.exchanges, election, arena.broker_epochs)
        delivery.announced_at(changed, self._replicas)  # or there is no figure
        rows: dict[str, float] = {}
        for rate, load in seen.loads.items():
            rows |= _rows(rate, load)
        rows["requests to brokers, number"] = delivery.requests
        return Figures(_percentile(seen.loads[COMPARED].changes, 99) / 1e9, rows)


def _rows(rate: int, load: Load) -> Mapping[str, float]:
    return {
        f"{rate:,} a second: p50 of a change, ms": _percentile(load.changes, 50) / _NS_IN_MS,
        f"{rate:,} a second: p99 of a change, ms": _percentile(load.changes, 99) / _NS_IN_MS,
        f"{rate:,} a second: p50 of a request, ms": _percentile(load.requests, 50) / _NS_IN_MS,
        f"{rate:,} a second: p99 of a request, ms": _percentile(load.requests, 99) / _NS_IN_MS,
        f"{rate:,} a second: answered in a second": load.throughput,
        f"{rate:,} a second: changes in a request": len(load.changes) / len(load.requests),
    }


def _percentile(ascending: list[int], percent: int) -> int:
    """The smallest value that so many per cent do not exceed."""
    return ascending[max(-(-len(ascending) * percent // 100), 1) - 1]


def run(options: Options, console: Console) -> Result:
    """Have the leaders ask in turns."""
    cluster = Cluster(min(options.size, MOST_PARTITIONS), protocol_version=NEWEST_PROTOCOL_VERSION)
    setting = Setting(
        cluster,
        IsrChanges,
        compared=f"{COMPARED:,} ISR changes a second, p99",
        asks_controller=True,
    )
    return compare(setting, options, console)


BENCHMARK = Benchmark(
    name="alter-partition",
    summary="How long leaders wait for the answer to ISR changes, at 1,000 and 10,000 a second.",
    unit="ISR changes at each rate",
    default_size=20_000,
    run=run,
    default_samples=1,
)

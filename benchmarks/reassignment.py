"""Reassignment: from a request in ZooKeeper until it has been carried out for all partitions.

Each partition has its last replica moved to another broker. Followers are in sync at once: what is
measured is the controller, not the copying.
"""

from typing import NamedTuple

from rich.console import Console

from benchmarks.arena import Arena
from benchmarks.benchmark import Benchmark, Options, Result
from benchmarks.changes import Change, Figures, Setting, compare
from benchmarks.cluster import PARTITIONS_PER_TOPIC, Cluster
from benchmarks.contenders import Contender
from benchmarks.delivery import Delivery
from benchmarks.errors import BenchmarkError
from benchmarks.stub.exchanges import Exchange, StubStatus
from benchmarks.zookeeper import Create, Election
from regent.model.partition import TopicPartition
from regent.zk_data import paths
from regent.zk_data.reassign_partitions import encode_reassign_partitions

Assignments = dict[TopicPartition, tuple[int, ...]]


class Seen(NamedTuple):
    """What was seen of a reassignment; monotonic nanoseconds."""

    requested_at: int
    gone_at: int
    exchanges: list[Exchange]


class Reassignment(Change[Seen]):
    """All partitions move, there and back in turns."""

    def __init__(self, arena: Arena) -> None:
        super().__init__(arena)
        self._present: Assignments = {
            tp: partition.replicas for tp, partition in arena.cluster.states.items()
        }
        self._target = self._present

    def reset(self) -> None:
        """The next target: another last replica."""
        self._target = {
            tp: (*replicas[:-1], self._next(replicas)) for tp, replicas in self._present.items()
        }

    def _next(self, replicas: tuple[int, ...]) -> int:
        """The broker after the last replica that has none."""
        count = len(self.arena.cluster.broker_ids)
        broker_id = replicas[-1] % count + 1
        while broker_id in replicas:
            broker_id = broker_id % count + 1
        return broker_id

    def happen(self, contender: Contender) -> Seen:
        """Ask for all at once, as Kafka's tools do, and wait until the request is gone."""
        arena = self.arena
        content = encode_reassign_partitions(self._target)
        requested_at = arena.session.write_at_once([Create(paths.REASSIGN_PARTITIONS, content)])
        gone_at = arena.session.await_end(
            lambda: not arena.session.exists(paths.REASSIGN_PARTITIONS),
            what="the request has not been carried out",
            timeout_s=arena.options.timeout_s,
        )

        def arrived(status: StubStatus) -> bool:
            return sum(status.stopped_partitions.values()) >= len(self._target)

        arena.await_requests(contender, arrived)
        return Seen(requested_at, gone_at, arena.stubs.take())

    def judge(self, seen: Seen, election: Election) -> Figures:
        arena = self.arena
        states = arena.session.states(list(self._target))
        for tp, target in self._target.items():
            if set(states[tp].isr) != set(target):
                raise BenchmarkError(f"{tp} was moved to {target}, and has {states[tp]}")
        for topic in arena.cluster.topics:
            replicas = {
                number: self._target[TopicPartition(topic, number)]
                for number in arena.cluster.assignments(topic)
            }
            arena.session.require_assignment(topic, replicas)
        delivery = Delivery(seen.exchanges, election, arena.broker_epochs)
        known_at = delivery.leaders_known_at(states, self._target)
        left = {
            tp: [r for r in replicas if r not in self._target[tp]]
            for tp, replicas in self._present.items()
        }
        deleted_at = delivery.deletions_answered_at(left)
        self._present = self._target

        def since(at: int) -> float:
            return (at - seen.requested_at) / 1e9

        return Figures(
            since(max(seen.gone_at, known_at, deleted_at)),
            {
                "request to its end": since(seen.gone_at),
                "request to all leaderships known": since(known_at),
                "request to the last replica deleted": since(deleted_at),
                "requests, number": delivery.requests,
                "requests, MB": delivery.request_bytes / 1e6,
            },
        )


def run(options: Options, console: Console) -> Result:
    """Move all partitions in turns."""
    setting = Setting(
        Cluster(options.size, partitions_per_topic=PARTITIONS_PER_TOPIC),
        Reassignment,
        compared="request to everything done and answered",
        has_followers=True,
    )
    return compare(setting, options, console)


BENCHMARK = Benchmark(
    name="reassignment",
    summary="From a reassignment of all partitions until it has been carried out.",
    unit="partitions",
    default_size=10_000,
    run=run,
    default_samples=1,
)

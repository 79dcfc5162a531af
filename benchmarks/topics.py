"""Topics: many are created at once, and deleted at once, as tools do it.

The clock of the creation starts with the transaction that writes the topics' znodes, and stops when
every broker has answered an UpdateMetadata, and every replica's one a LeaderAndIsr. That of the
deletion starts with the transaction that writes the markers, and stops when all znodes are gone.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from rich.console import Console

from benchmarks.arena import SMALLEST_ENTRY_BYTES, Arena
from benchmarks.benchmark import Benchmark, Options, Result
from benchmarks.changes import Change, Figures, Setting, compare
from benchmarks.cluster import Cluster
from benchmarks.contenders import Contender
from benchmarks.delivery import Delivery
from benchmarks.errors import BenchmarkError
from benchmarks.stub.exchanges import Exchange, StubStatus
from benchmarks.zookeeper import Create, Election
from regent.model.partition import INITIAL_LEADER_EPOCH, LeaderAndIsr, TopicPartition
from regent.zk_data import paths
from regent.zk_data.config import encode_entity_config
from regent.zk_data.topics import TopicZNode, encode_topic

PARTITIONS_PER_TOPIC = 10


class Seen(NamedTuple):
    """What was seen of a creation and a deletion; monotonic nanoseconds."""

    created_at: int
    creation: list[Exchange]
    states: Mapping[TopicPartition, LeaderAndIsr]
    deleted_at: int
    gone_at: int
    deletion: list[Exchange]


class Topics(Change[Seen]):
    """Topics come and go. What they are follows from the arena's empty cluster and a number."""

    def __init__(self, arena: Arena, count: int) -> None:
        super().__init__(arena)
        self._topics = Cluster(
            count * PARTITIONS_PER_TOPIC, partitions_per_topic=PARTITIONS_PER_TOPIC
        )
        self._replicas = {tp: p.replicas for tp, p in self._topics.states.items()}

    def reset(self) -> None:
        """Nothing is left of them."""

    def happen(self, contender: Contender) -> Seen:
        """Create all, then delete all."""
        session, stubs = self.arena.session, self.arena.stubs
        created_at = session.write_at_once(list(self._znodes()))
        self.arena.await_requests(contender, self._creation_arrived)
        creation = stubs.take()
        states = session.states(list(self._replicas))
        deleted_at = session.write_at_once(
            [Create(paths.delete_topic(topic), b"") for topic in self._topics.topics]
        )
        gone_at = session.await_end(
            lambda: not session.child_count(paths.DELETE_TOPICS),
            what="topics have not been deleted",
            timeout_s=self.arena.options.timeout_s,
        )
        self.arena.await_requests(contender, self._deletion_arrived)
        return Seen(created_at, creation, states, deleted_at, gone_at, stubs.take())

    def judge(self, seen: Seen, election: Election) -> Figures:
        for tp, replicas in self._replicas.items():
            expected = LeaderAndIsr(replicas[0], INITIAL_LEADER_EPOCH, replicas, election.epoch, 0)
            if seen.states.get(tp) != expected:
                raise BenchmarkError(f"{tp} was created with {seen.states.get(tp)}")
        for parent in (paths.BROKER_TOPICS, paths.TOPIC_CONFIGS):
            if left := self.arena.session.children(parent):
                raise BenchmarkError(f"{len(left)} nodes are left in {parent}")
        creation = Delivery(seen.creation, election, self.arena.broker_epochs)
        known_at = creation.leaders_known_at(seen.states, self._replicas)
        deletion = Delivery(seen.deletion, election, self.arena.broker_epochs)
        deletion.require_forgotten(self._replicas)
        deletion.require_epoch_of_deletion(self._replicas)
        answered_at = deletion.deletions_answered_at(self._replicas)
        creation_s = (known_at - seen.created_at) / 1e9
        deletion_s = (seen.gone_at - seen.deleted_at) / 1e9
        return Figures(
            creation_s + deletion_s,
            {
                "creation": creation_s,
                "deletion": deletion_s,
                "deletion to last StopReplica answered": (answered_at - seen.deleted_at) / 1e9,
                "requests, number": creation.requests + deletion.requests,
                "requests, MB": (creation.request_bytes + deletion.request_bytes) / 1e6,
            },
        )

    def _znodes(self) -> Iterator[Create]:
        for topic in self._topics.topics:
            yield Create(paths.topic_config(topic), encode_entity_config({}))
            content = encode_topic(TopicZNode(None, self._topics.assignments(topic)))
            yield Create(paths.topic(topic), content)

    def _creation_arrived(self, status: StubStatus) -> bool:
        total = sum(status.leader_and_isr_partitions.values())
        return total >= sum(map(len, self._replicas.values())) and all(
            size >= SMALLEST_ENTRY_BYTES * self._topics.size
            for size in status.update_metadata_bytes.values()
        )

    def _deletion_arrived(self, status: StubStatus) -> bool:
        total = sum(status.stopped_partitions.values())
        return total >= sum(map(len, self._replicas.values()))


def run(options: Options, console: Console) -> Result:
    """Create and delete in turns, in a cluster without other topics."""

    def change(arena: Arena) -> Topics:
        return Topics(arena, options.size)

    setting = Setting(Cluster(0), change, compared="creation and deletion")
    return compare(setting, options, console)


BENCHMARK = Benchmark(
    name="topics",
    summary="The creation of many topics at once, and their deletion.",
    unit=f"topics of {PARTITIONS_PER_TOPIC} partitions",
    default_size=1_000,
    run=run,
    default_samples=1,
)

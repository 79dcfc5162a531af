"""What can happen to a cluster, one thing at a time, for the benchmark of events."""

from typing import Any

from benchmarks.errors import BenchmarkError
from benchmarks.event_bench import SMALL_BROKER, Bench
from regent.admin.commands import CreateTopic
from regent.controller import events as e
from regent.model.partition import ReplicaAssignment, TopicPartition
from regent.protocol.control_requests import (
    LeaderAndIsrResponse,
    StopReplicaPartition,
    StopReplicaResponse,
    UpdateMetadataResponse,
)
from regent.zk_data import paths
from regent.zk_data.config import encode_entity_config
from regent.zk_data.reassign_partitions import encode_reassign_partitions
from regent.zk_data.topics import TopicZNode, encode_topic
from tests.support.broker_znodes import (
    encode_isr_change_notification,
    encode_log_dir_event,
    encode_preferred_replica_election,
    isr_change_notification_prefix,
    log_dir_event_notification_prefix,
)

_STRIDE = 7919  # a prime: partitions that are chosen one after the other are far apart


class Happenings:
    """Each lets something happen and returns the milliseconds of processor time that it took."""

    def __init__(self, bench: Bench) -> None:
        self._bench = bench
        self._topics = list(bench.cluster.topics)
        self._number = 0

    def _fresh(self) -> str:
        self._number += 1
        return f"new-{self._number:05d}"

    def _some_partition(self) -> TopicPartition:
        self._number += 1
        topic = self._topics[self._number * _STRIDE % len(self._topics)]
        return TopicPartition(topic, self._number % len(self._bench.cluster.topics[topic]))

    async def isr_change(self) -> float:
        """A follower falls out of the ISR of one partition."""
        tp = self._some_partition()
        return await self._change_isr(tp, self._replicas(tp)[:2])

    async def command(self) -> float:
        """A custom resource asks for a topic; the topic itself is created by the next event."""
        topic = self._fresh()
        answered: list[Any] = []
        took = await self._bench.cost(
            e.CommandsReceived((CreateTopic(topic, 1, 3),), reply_to=answered.append),
            publishes=False,
        )
        if len(answered) != 1:
            raise BenchmarkError("the command was not answered")
        self._bench.zookeeper.remove(paths.topic(topic))
        return took

    async def creation(self) -> float:
        """A topic of one partition appears."""
        znode = TopicZNode(None, {0: ReplicaAssignment((1, 2, 3))})
        topic = self._fresh()
        self._bench.zookeeper.put(paths.topic(topic), encode_topic(znode))
        self._bench.zookeeper.put(paths.topic_config(topic), encode_entity_config({}))
        return await self._bench.cost(e.TopicChange())

    async def growth(self) -> float:
        """A topic of one partition grows by another."""
        await self.creation()
        topic = f"new-{self._number:05d}"
        znode = TopicZNode(None, dict.fromkeys(range(2), ReplicaAssignment((1, 2, 3))))
        self._bench.zookeeper.put(paths.topic(topic), encode_topic(znode))
        return await self._bench.cost(e.PartitionModifications((topic,)))

    async def deletion(self) -> float:
        """A topic of one partition is deleted: the marker, and the answers of its brokers."""
        await self.creation()
        topic = f"new-{self._number:05d}"
        self._bench.zookeeper.put(paths.delete_topic(topic))
        took = await self._bench.cost(e.TopicDeletion())
        asked = {TopicPartition(topic, 0): StopReplicaPartition(-2, delete=True)}
        answers = [
            e.StopReplicaResponseReceived((StopReplicaResponse(broker_id, 0, {}, asked),))
            for broker_id in (1, 2, 3)
        ]
        took += await self._bench.cost(*answers)
        if topic in self._bench.publisher.view.topics:
            raise BenchmarkError("the topic was not deleted")
        return took

    async def stop(self) -> float:
        """A broker with ten replicas stops (and starts again, which is not counted here)."""
        took, _ = await self._bounce()
        return took

    async def start(self) -> float:
        """It starts again."""
        _, took = await self._bounce()
        return took

    async def _bounce(self) -> tuple[float, float]:
        self._bench.zookeeper.remove(paths.broker_id(SMALL_BROKER))
        stopped = await self._bench.cost(e.BrokerChange())
        self._bench.register(SMALL_BROKER)
        return stopped, await self._bench.cost(e.BrokerChange())

    async def update_metadata_answer(self) -> float:
        """A broker answers an UpdateMetadata."""
        answer = UpdateMetadataResponse(1, 0)
        return await self._bench.cost(e.UpdateMetadataResponseReceived((answer,)), publishes=False)

    async def leader_and_isr_answer(self) -> float:
        """A broker answers a LeaderAndIsr of one partition."""
        answer = LeaderAndIsrResponse(1, 0, {}, {self._some_partition(): False})
        return await self._bench.cost(e.LeaderAndIsrResponseReceived((answer,)), publishes=False)

    async def publication(self) -> float:
        """A topic of 50 partitions is published again, and nothing else happens."""
        return await self._bench.view_cost(self._some_partition().topic)

    async def reassignment_begins(self) -> float:
        """Kafka's tools ask for another last replica of one partition."""
        tp = self._some_partition()
        took = await self._begin_reassignment(tp)
        await self._complete_reassignment(tp)
        return took

    async def reassignment_ends(self) -> float:
        """The new replica of one partition is in sync."""
        tp = self._some_partition()
        await self._begin_reassignment(tp)
        return await self._complete_reassignment(tp)

    async def _begin_reassignment(self, tp: TopicPartition) -> float:
        replicas = self._replicas(tp)
        added = next(b for b in self._bench.cluster.broker_ids if b not in replicas)
        target = (*replicas[:-1], added)
        content = encode_reassign_partitions({tp: target})
        self._bench.zookeeper.put(paths.REASSIGN_PARTITIONS, content)
        return await self._bench.cost(e.ZkPartitionReassignment())

    async def _complete_reassignment(self, tp: TopicPartition) -> float:
        current = self._bench.context.cluster.leadership[tp]
        self._bench.put_state(tp, self._replicas(tp), leader_epoch=current.leader_epoch)
        took = await self._bench.cost(e.PartitionReassignmentIsrChange((tp,)))
        if len(self._replicas(tp)) != self._bench.cluster.replication_factor:
            raise BenchmarkError(f"{tp} has not been moved")
        return took

    def _replicas(self, tp: TopicPartition) -> tuple[int, ...]:
        return self._bench.context.cluster.replicas(tp)

    async def preferred_election(self) -> float:
        """Kafka's tools ask for the preferred leader of one partition."""
        tp = await self._lead_by_another()
        content = encode_preferred_replica_election([tp])
        self._bench.zookeeper.put(paths.PREFERRED_REPLICA_ELECTION, content)
        took = await self._bench.cost(e.ReplicaLeaderElection())
        if self._bench.context.cluster.leadership[tp].leader != self._replicas(tp)[0]:
            raise BenchmarkError(f"{tp} has not got its preferred leader")
        return took

    async def balance_check(self) -> float:
        """The balance of leaders is checked; one partition more is led by another replica."""
        await self._lead_by_another()
        return await self._bench.cost(e.AutoPreferredReplicaLeaderElection(), publishes=False)

    async def _lead_by_another(self) -> TopicPartition:
        tp = self._some_partition()
        first, second, *others = self._replicas(tp)
        await self._change_isr(tp, (second, first, *others))
        return tp

    async def _change_isr(self, tp: TopicPartition, isr: tuple[int, ...]) -> float:
        self._bench.put_state(tp, isr, leader_epoch=1)
        notification = f"{isr_change_notification_prefix()}{self._number:010d}"
        self._bench.zookeeper.put(notification, encode_isr_change_notification([tp]))
        return await self._bench.cost(e.IsrChangeNotification())

    async def log_dir_failure(self) -> float:
        """A broker with ten replicas reports a failed log directory."""
        self._number += 1
        notification = f"{log_dir_event_notification_prefix()}{self._number:010d}"
        self._bench.zookeeper.put(notification, encode_log_dir_event(SMALL_BROKER))
        return await self._bench.cost(e.LogDirEventNotification(), publishes=False)

"""A controller in memory for tests of the Kubernetes side: no ZooKeeper, no brokers.

It refuses what the real one refuses and publishes views the way the real one does: from its own
thread, after the command was answered. Elections always succeed at once.
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import assert_never

from regent.controller.commands import (
    Accepted,
    AlterTopicConfig,
    Command,
    CreatePartitions,
    CreateTopic,
    DeleteTopic,
    DescribeTopicConfigs,
    Outcome,
    Reason,
    Rejected,
)
from regent.controller.view import ClusterView, PartitionHealth, PartitionView, TopicView
from regent.model.cluster import Broker
from regent.model.topic import topic_name_problem
from regent.model.topic_config import impossible_values

Listener = Callable[[frozenset[str] | None], None]


class MemoryController:
    """Implements ControllerPort. Tests play the cluster with the other methods.

    Attributes:
        commands: Everything submitted so far, in order.
        batches: Sizes of the submissions so far.
        delete_topic_enable: As the brokers' setting of that name.
        hold_deletions: Whether topics being deleted stay until :meth:`finish_deletions`.
        refuse_with: Answer to all writing commands instead of carrying them out.
    """

    def __init__(self, *, brokers: int = 3, is_active: bool = True, epoch: int = 1) -> None:
        self.commands: list[Command] = []
        self.batches: list[int] = []
        self.delete_topic_enable = True
        self.hold_deletions = False
        self.refuse_with: Rejected | None = None
        self._configs: dict[str, dict[str, str]] = {}
        self._listeners: list[Listener] = []
        self._lock = threading.Lock()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="controller")
        self._next_id = 1
        self._view = ClusterView(
            is_active=is_active,
            is_complete=is_active,
            controller_id=1_000_000_000,
            controller_epoch=epoch if is_active else 0,
            brokers={i: Broker(i, i, ()) for i in range(1, brokers + 1)},
        )

    @property
    def view(self) -> ClusterView:
        return self._view

    @property
    def changes(self) -> list[Command]:
        """The commands submitted so far that are not mere readings."""
        return [c for c in self.commands if not isinstance(c, DescribeTopicConfigs)]

    async def submit(self, commands: Sequence[Command]) -> Sequence[Outcome]:
        self.batches.append(len(commands))
        self.commands.extend(commands)
        if not self._view.is_active:
            return [Rejected(Reason.NOT_CONTROLLER, "not the controller") for _ in commands]
        with self._lock:
            return [self._carry_out(command) for command in commands]

    def subscribe(self, listener: Callable[[frozenset[str] | None], None]) -> None:
        self._listeners.append(listener)

    def close(self) -> None:
        """End the thread that publishes views."""
        self._thread.shutdown(wait=True)

    # What happens in the cluster

    def set_active(self, is_active: bool, *, epoch: int | None = None) -> None:
        """Win or lose the election."""
        old = self._view
        self._view = ClusterView(
            is_active=is_active,
            is_complete=is_active,
            controller_id=old.controller_id,
            controller_epoch=epoch or old.controller_epoch,
            brokers=old.brokers,
            topics=old.topics,
        )
        self._tell(None)

    def set_brokers(self, *ids: int) -> None:
        """These brokers are alive."""
        self._replace(brokers={i: Broker(i, i, ()) for i in ids})
        self._tell(None)

    def put_topic(
        self,
        name: str,
        replicas: Sequence[tuple[int, ...]],
        config: Mapping[str, str] | None = None,
    ) -> None:
        """Somebody creates, grows or moves a topic with Kafka's own tools."""
        with self._lock:
            self._store(name, replicas, {} if config is None else config, keep_id=True)

    def set_config(self, name: str, config: Mapping[str, str]) -> None:
        """Somebody changes the configuration of a topic with Kafka's own tools."""
        self._configs[name] = dict(config)
        self._tell(frozenset({name}))

    def remove_topic(self, name: str) -> None:
        """A topic is gone."""
        topics = {other: topic for other, topic in self._view.topics.items() if other != name}
        self._configs.pop(name, None)
        self._replace(topics=topics)
        self._tell(frozenset({name}))

    def set_isr(self, name: str, partition: int, isr: tuple[int, ...]) -> None:
        """Replicas fall out of sync or come back; without any, the leader is gone, too."""
        topic = self._view.topics[name]
        changed = tuple(
            self._partition(p.partition, p.replicas, isr) if p.partition == partition else p
            for p in topic.partitions
        )
        self._replace(topics={**self._view.topics, name: TopicView(name, topic.topic_id, changed)})
        self._tell(frozenset({name}))

    def finish_deletions(self) -> None:
        """The brokers have deleted their replicas."""
        for name, topic in self._view.topics.items():
            if topic.is_being_deleted:
                self.remove_topic(name)

    # Commands

    def _carry_out(self, command: Command) -> Outcome:
        if isinstance(command, DescribeTopicConfigs):
            known = (topic for topic in command.topics if topic in self._configs)
            return Accepted({topic: dict(self._configs[topic]) for topic in known})
        problem = self.refuse_with or self._problem(command)
        if problem is not None:
            return problem
        match command:
            case CreateTopic():
                self._store(
                    command.topic,
                    self._placed(command.assignment, range(command.partitions), command),
                    command.config,
                )
            case CreatePartitions():
                topic = self._view.topics[command.topic]
                added = range(len(topic.partitions), command.total)
                replicas = [p.replicas for p in topic.partitions]
                replicas.extend(self._placed(command.assignment, added, len(replicas[0])))
                self._store(command.topic, replicas, self._configs[command.topic], keep_id=True)
            case AlterTopicConfig():
                kept = self._configs[command.topic]
                config = {k: v for k, v in kept.items() if k not in command.remove}
                self.set_config(command.topic, {**config, **command.set})
            case DeleteTopic():
                self._mark_deleted(command.topic)
            case _:
                assert_never(command)
        return Accepted()

    def _problem(
        self, command: CreateTopic | CreatePartitions | AlterTopicConfig | DeleteTopic
    ) -> Rejected | None:
        name = command.topic
        topic = self._view.topics.get(name)
        if isinstance(command, CreateTopic):
            return self._creation_problem(command)
        if topic is None:
            return Rejected(Reason.UNKNOWN_TOPIC, f"topic {name} does not exist", "topic")
        if topic.is_being_deleted:
            return Rejected(Reason.TOPIC_MARKED_FOR_DELETION, f"topic {name} is being deleted")
        if isinstance(command, CreatePartitions) and command.total <= len(topic.partitions):
            return Rejected(Reason.INVALID_PARTITIONS, "not more partitions than before", "total")
        if isinstance(command, AlterTopicConfig):
            return _config_rejection(command.set)
        if isinstance(command, DeleteTopic) and not self.delete_topic_enable:
            return Rejected(
                Reason.TOPIC_DELETION_DISABLED, "the brokers run with delete.topic.enable=false"
            )
        return None

    def _creation_problem(self, command: CreateTopic) -> Rejected | None:
        existing = self._view.topics.get(command.topic)
        if existing is not None:
            deleted = existing.is_being_deleted
            reason = Reason.TOPIC_MARKED_FOR_DELETION if deleted else Reason.TOPIC_ALREADY_EXISTS
            return Rejected(reason, f"topic {command.topic} exists", "topic")
        name_problem = topic_name_problem(command.topic)
        if name_problem is not None:
            return Rejected(Reason.INVALID_TOPIC_NAME, name_problem, "topic")
        factor = command.replication_factor
        if factor is not None and factor > len(self._view.brokers):
            return Rejected(
                Reason.INVALID_REPLICATION_FACTOR, "not enough brokers", "replication_factor"
            )
        for replicas in (command.assignment or {}).values():
            if not set(replicas) <= self._view.brokers.keys():
                return Rejected(
                    Reason.INVALID_REPLICA_ASSIGNMENT, f"no such brokers: {replicas}", "assignment"
                )
        return _config_rejection(command.config)

    def _placed(
        self,
        assignment: Mapping[int, tuple[int, ...]] | None,
        partitions: range,
        factor: CreateTopic | int,
    ) -> list[tuple[int, ...]]:
        if assignment is not None:
            return [assignment[partition] for partition in partitions]
        count = factor if isinstance(factor, int) else factor.replication_factor or 1
        ids = sorted(self._view.brokers)
        return [tuple(ids[(p + r) % len(ids)] for r in range(count)) for p in partitions]

    def _store(
        self,
        name: str,
        replicas: Sequence[tuple[int, ...]],
        config: Mapping[str, str],
        *,
        keep_id: bool = False,
    ) -> None:
        old = self._view.topics.get(name)
        topic_id = old.topic_id if old is not None and keep_id else uuid.UUID(int=self._next_id)
        self._next_id += 1
        partitions = tuple(self._partition(i, r, r) for i, r in enumerate(replicas))
        self._configs[name] = dict(config)
        self._replace(topics={**self._view.topics, name: TopicView(name, topic_id, partitions)})
        self._tell(frozenset({name}))

    def _partition(
        self, index: int, replicas: tuple[int, ...], isr: tuple[int, ...]
    ) -> PartitionView:
        leader = isr[0] if isr else -1
        state = PartitionHealth.ONLINE if isr else PartitionHealth.OFFLINE
        return PartitionView(index, state, replicas, leader, 0, isr or replicas[:1])

    def _mark_deleted(self, name: str) -> None:
        topic = self._view.topics[name]
        marked = TopicView(name, topic.topic_id, topic.partitions, is_being_deleted=True)
        self._replace(topics={**self._view.topics, name: marked})
        self._tell(frozenset({name}))
        if not self.hold_deletions:
            self._thread.submit(self.remove_topic, name)

    def _replace(
        self,
        *,
        topics: Mapping[str, TopicView] | None = None,
        brokers: Mapping[int, Broker] | None = None,
    ) -> None:
        old = self._view
        self._view = ClusterView(
            is_active=old.is_active,
            is_complete=old.is_complete,
            controller_id=old.controller_id,
            controller_epoch=old.controller_epoch,
            brokers=old.brokers if brokers is None else brokers,
            topics=old.topics if topics is None else topics,
        )

    def _tell(self, topics: frozenset[str] | None) -> None:
        for listener in self._listeners:
            self._thread.submit(listener, topics)


def _config_rejection(config: Mapping[str, str]) -> Rejected | None:
    for problem in impossible_values(config):
        return Rejected(Reason.INVALID_CONFIG, problem.message, f'config["{problem.key}"]')
    return None

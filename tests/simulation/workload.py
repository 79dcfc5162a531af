"""What people do: topics by commands and by hand, as Kafka's own tools write them, and records."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

from regent.admin.commands import (
    Accepted,
    AlterPartitionReassignments,
    AlterTopicConfig,
    CreatePartitions,
    CreateTopic,
    DeleteTopic,
    ElectionType,
    ElectLeaders,
    Outcome,
    PartitionResult,
    ReassignTopic,
)
from regent.controller import events as e
from regent.controller.commands import Command
from regent.model.errors import MalformedZNodeError
from regent.model.partition import ReplicaAssignment, TopicPartition
from regent.protocol.error_codes import NONE
from regent.zk_data import paths
from regent.zk_data.config import decode_entity_config, encode_config_change, encode_entity_config
from regent.zk_data.operations import Create, Delete, Operation, SetData, Written
from regent.zk_data.reassign_partitions import encode_reassign_partitions
from regent.zk_data.topics import TopicZNode, decode_topic, encode_topic
from tests.simulation.driver import RegentProcess
from tests.simulation.trace import InvariantViolatedError
from tests.support.broker_znodes import encode_preferred_replica_election

if TYPE_CHECKING:
    from tests.simulation.world import World

UNCLEAN = "unclean.leader.election.enable"
MAX_TOPICS = 4
MAX_PARTITIONS = 4


class Workload:
    """People and their tools, the answers to them, and replica lists that were ever asked for."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._admin = world.connect("admin")
        self._created = 0
        self._token = 0
        self._unanswered: dict[int, tuple[RegentProcess, tuple[Command, ...]]] = {}
        self.outcomes: list[tuple[Command, Outcome]] = []
        self.targets: dict[TopicPartition, dict[tuple[int, ...], None]] = {}

    def act(self) -> bool:
        """Something that the seed allows; mostly records are produced."""
        if self._world.rng.random() < 0.6 and self.produce():
            return True
        work = self._world.swarm.work
        (name,) = self._world.rng.choices(list(work), list(work.values()))
        return bool(getattr(self, name)())

    # Records

    def produce(self) -> bool:
        """Append a record to some partition whose leader is known, at least to itself."""
        leaders = [
            (broker, tp)
            for broker in self._world.brokers.values()
            if broker.is_responsive
            for tp, replica in broker.replicas.items()
            if replica.is_leader
        ]
        if not leaders:
            return False
        broker, tp = self._world.rng.choice(leaders)
        self._world.replication.produce(broker, tp)
        return True

    def need_producer_ids(self) -> bool:
        """Producers come to a broker until its producer ids are used up."""
        candidates = [b for b in self._world.brokers.values() if b.is_responsive]
        if not candidates:
            return False
        return self._world.rng.choice(candidates).requests.producer_ids.need()

    # Commands

    def submit(self, *commands: Command, to: RegentProcess | None = None) -> bool:
        """Put commands to a Regent process, be it active or not."""
        alive = [p for p in self._world.regents if p.is_alive]
        if to is None:
            if not alive:
                return False
            active = [p for p in alive if p.is_active]
            to = self._world.rng.choice(active or alive)
        self._token += 1
        self._unanswered[self._token] = (to, commands)
        self._world.trace.line("client", "submits", f"#{self._token} to {to.name} {commands}")
        to.put(e.commands_received(commands, reply_to=self._token))
        return True

    def answered(self, process: RegentProcess, token: int, outcomes: tuple[Outcome, ...]) -> None:
        """A process answers: once, to all commands, and what is accepted is in ZooKeeper."""
        self._world.trace.line("client", "is answered", f"#{token} {outcomes}")
        asked = self._unanswered.pop(token, None)
        if asked is None or asked[0] is not process or len(asked[1]) != len(outcomes):
            raise InvariantViolatedError(f"#{token}: unexpected answer {outcomes}")
        for command, outcome in zip(asked[1], outcomes, strict=True):
            self.outcomes.append((command, outcome))
            if (
                isinstance(outcome, Accepted)
                and isinstance(command, CreateTopic)
                and not self._world.safety.was_ever_created(command.topic)
            ):
                raise InvariantViolatedError(f"#{token}: accepted, but there is no topic")
            if isinstance(outcome, Accepted) and isinstance(command, ElectLeaders):
                self._check_elections(token, command, outcome.result)

    def _check_elections(
        self,
        token: int,
        command: ElectLeaders,
        results: dict[TopicPartition, PartitionResult],
    ) -> None:
        """Each partition has its outcome, and who is said to be elected was."""
        asked = command.partitions
        if asked is not None and list(results) != list(dict.fromkeys(asked)):
            raise InvariantViolatedError(f"#{token}: {asked} were asked for, answered {results}")
        if command.election_type is ElectionType.UNCLEAN:
            return
        for tp, result in results.items():
            if result.error_code == NONE and not self._world.safety.was_led_by_preferred(tp):
                raise InvariantViolatedError(f"#{token}: the preferred replica never led {tp}")

    def sender_died(self, process: RegentProcess) -> None:
        """Whoever waited for this process knows that it is gone."""
        self._unanswered = {t: x for t, x in self._unanswered.items() if x[0] is not process}

    @property
    def unanswered(self) -> list[int]:
        return list(self._unanswered)

    def _new_topic(self) -> str | None:
        existing = self._world.zookeeper.children(paths.BROKER_TOPICS)
        if len(existing) >= MAX_TOPICS:
            return None
        if self._world.swarm.reuses_names:
            free = [n for n in (f"t{i}" for i in range(MAX_TOPICS)) if n not in existing]
            marked = self._world.zookeeper.children(paths.DELETE_TOPICS)
            free = [name for name in free if name not in marked]
            return self._world.rng.choice(free) if free else None
        self._created += 1
        return f"t{self._created}"

    def _some_topic(self) -> str | None:
        topics = self._world.zookeeper.children(paths.BROKER_TOPICS)
        return self._world.rng.choice(topics) if topics else None

    def create_topic_by_command(self) -> bool:
        topic = self._new_topic()
        if topic is None:
            return False
        rng = self._world.rng
        config = {UNCLEAN: "true"} if rng.random() < 0.2 else {}
        return self.submit(
            CreateTopic(
                topic,
                partitions=rng.randint(1, 3),
                replication_factor=rng.randint(1, 3),
                config=config,
            )
        )

    def grow_by_command(self) -> bool:
        topic = self._some_topic()
        if topic is None:
            return False
        return self.submit(CreatePartitions(topic, total=self._world.rng.randint(2, 4)))

    def configure_by_command(self) -> bool:
        topic = self._some_topic()
        if topic is None:
            return False
        value = self._world.rng.choice(("true", "false"))
        return self.submit(AlterTopicConfig(topic, set={UNCLEAN: value}))

    def delete_by_command(self) -> bool:
        topic = self._some_topic()
        return topic is not None and self.submit(DeleteTopic(topic))

    def _some_partitions(self) -> list[TopicPartition]:
        """Of those that there are, and one that there is not."""
        rng, known = self._world.rng, self._world.safety.partitions
        known.append(TopicPartition("nobody", 0))
        return rng.sample(known, rng.randint(1, len(known)))

    def elect_leaders_by_command(self) -> bool:
        rng = self._world.rng
        election_type = ElectionType.UNCLEAN if rng.random() < 0.2 else ElectionType.PREFERRED
        partitions = None if rng.random() < 0.3 else tuple(self._some_partitions())
        return self.submit(ElectLeaders(election_type, partitions))

    # Reassignments

    def _some_targets(self) -> dict[TopicPartition, tuple[int, ...]]:
        """Other replica lists for some partitions, of brokers that may be down."""
        topic, rng = self._some_topic(), self._world.rng
        node = None if topic is None else self._world.zookeeper.get(paths.topic(topic))
        if topic is None or node is None:
            return {}
        try:
            partitions = list(decode_topic(topic, node.data).assignments)
        except MalformedZNodeError:
            return {}
        chosen = rng.sample(partitions, rng.randint(min(1, len(partitions)), len(partitions)))
        brokers = list(self._world.brokers)
        return {
            TopicPartition(topic, p): tuple(rng.sample(brokers, rng.randint(1, 3))) for p in chosen
        }

    def _wants(self, targets: dict[TopicPartition, tuple[int, ...]]) -> None:
        for tp, target in targets.items():
            self.targets.setdefault(tp, {})[target] = None

    def reassign_by_command(self) -> bool:
        targets = self._some_targets()
        throttle = None if len(targets) == 1 else 1_000 * len(targets)
        return bool(targets) and self.reassign(targets, throttle=throttle)

    def change_replicas(self, topic: str, targets: dict[int, tuple[int, ...]]) -> bool:
        """As a custom resource does that declares another number of replicas."""
        self._wants({TopicPartition(topic, p): target for p, target in targets.items()})
        return self.submit(ReassignTopic(topic, targets))

    def reassign(
        self, targets: dict[TopicPartition, tuple[int, ...]], *, throttle: int | None = None
    ) -> bool:
        """Ask Regent for reassignments."""
        self._wants(targets)
        return self.submit(AlterPartitionReassignments(dict(targets), throttle=throttle))

    def cancel_by_command(self) -> bool:
        targets = self._some_targets()
        return bool(targets) and self.submit(AlterPartitionReassignments(dict.fromkeys(targets)))

    def reassign_by_hand(self) -> bool:
        targets = self._some_targets()
        if not targets or self._world.zookeeper.get(paths.REASSIGN_PARTITIONS) is not None:
            return False  # Kafka's tool waits for the end of the last
        return self.request_reassignment(targets)

    def rewrite_request_by_hand(self) -> bool:
        """Somebody asks for something else instead of what is asked for."""
        targets = self._some_targets()
        if not targets:
            return False
        self._wants(targets)
        return self.multi(SetData(paths.REASSIGN_PARTITIONS, encode_reassign_partitions(targets)))

    def withdraw_request_by_hand(self) -> bool:
        """Somebody deletes the request, which stops nothing that has begun."""
        return self.multi(Delete(paths.REASSIGN_PARTITIONS))

    def request_reassignment(self, targets: dict[TopicPartition, tuple[int, ...]]) -> bool:
        """Leave the node that Kafka's tool leaves."""
        self._wants(targets)
        return self.multi(Create(paths.REASSIGN_PARTITIONS, encode_reassign_partitions(targets)))

    # By hand

    def elect_preferred_leaders_by_hand(self) -> bool:
        return self.elect_preferred_leaders(self._some_partitions())

    def elect_preferred_leaders(self, partitions: list[TopicPartition]) -> bool:
        """Ask for preferred leaders, unless somebody else does."""
        content = encode_preferred_replica_election(partitions)
        return self.multi(Create(paths.PREFERRED_REPLICA_ELECTION, content))

    def multi(self, *operations: Operation) -> bool:
        """A transaction of an administrator. Whether it was applied."""
        results = self._admin.multi(operations)
        applied = all(isinstance(result, Written) for result in results)
        if applied:
            about = ", ".join(f"{type(op).__name__} {op.path}" for op in operations)
            self._world.trace.line("admin", "writes", about)
        return applied

    def create_topic_by_hand(self) -> bool:
        topic = self._new_topic()
        if topic is None:
            return False
        rng = self._world.rng
        brokers = list(self._world.brokers)
        factor = rng.randint(1, min(3, len(brokers)))
        assignments = {p: tuple(rng.sample(brokers, factor)) for p in range(rng.randint(1, 3))}
        config = {UNCLEAN: "true"} if rng.random() < 0.2 else {}
        return self.create_topic(topic, assignments, config)

    def create_topic(
        self,
        topic: str,
        assignments: dict[int, tuple[int, ...]],
        config: dict[str, str] | None = None,
    ) -> bool:
        """The two nodes that Kafka's tools write; with an id only where they know of ids."""
        topic_id = None
        if self._world.protocol >= (2, 8) and self._world.rng.random() < 0.7:
            topic_id = uuid.UUID(int=self._world.rng.getrandbits(128))
        znode = TopicZNode(topic_id, {p: ReplicaAssignment(a) for p, a in assignments.items()})
        content = encode_entity_config(config or {})
        path = paths.topic_config(topic)
        has_config = self._world.zookeeper.get(path) is not None
        return self.multi(
            SetData(path, content) if has_config else Create(path, content),
            Create(paths.topic(topic), encode_topic(znode)),
        )

    def grow_by_hand(self) -> bool:
        topic = self._some_topic()
        return topic is not None and self.grow(topic, self._world.rng.randint(2, MAX_PARTITIONS))

    def grow(self, topic: str, total: int) -> bool:
        """Read, add partitions, write back on condition that nobody else has. What is none of
        Kafka's topics is taken away in the end, and nobody makes one of it."""
        path = paths.topic(topic)
        if topic.startswith("junk"):
            return False
        (node,) = self._admin.get_data([path])
        if node is None or self._world.zookeeper.get(paths.delete_topic(topic)) is not None:
            return False
        try:
            znode = decode_topic(topic, node.data)
        except MalformedZNodeError:
            return False
        if znode.problems or not len(znode.assignments) < total:
            return False
        brokers = list(self._world.brokers)
        factor = len(znode.assignments[0].replicas) if 0 in znode.assignments else 1
        grown = dict(znode.assignments)
        for partition in range(len(grown), total):
            replicas = tuple(self._world.rng.sample(brokers, min(factor, len(brokers))))
            grown[partition] = ReplicaAssignment(replicas)
        content = encode_topic(TopicZNode(znode.topic_id, grown))
        return self.multi(SetData(path, content, node.version))

    def configure_by_hand(self) -> bool:
        topic = self._some_topic()
        if topic is None:
            return False
        value = self._world.rng.choice(("true", "false"))
        return self._configure(paths.topic_config(topic), f"topics/{topic}", value)

    def change_unclean_default(self) -> bool:
        value = self._world.rng.choice(("true", "false", "false", "false"))
        entity = f"brokers/{paths.DEFAULT_ENTITY}"
        return self._configure(paths.broker_config(None), entity, value)

    def _configure(self, path: str, entity_path: str, value: str) -> bool:
        (node,) = self._admin.get_data([path])
        try:
            config = {} if node is None else decode_entity_config(path, node.data)
        except MalformedZNodeError:
            return False
        content = encode_entity_config(config | {UNCLEAN: value})
        written = self.multi(
            Create(path, content) if node is None else SetData(path, content, node.version)
        )
        change = Create(
            paths.config_change_prefix(), encode_config_change(entity_path), sequential=True
        )
        return written and self.multi(change)

    def reset_unclean_default(self) -> bool:
        """Write the cluster-wide default again, whatever it holds."""
        self._admin.multi([Delete(paths.broker_config(None))])
        return self._configure(
            paths.broker_config(None), f"brokers/{paths.DEFAULT_ENTITY}", "false"
        )

    def delete_recursively(self, path: str) -> None:
        """As ``zkCli.sh deleteall``."""
        for child in self._world.zookeeper.children(path):
            self.delete_recursively(f"{path}/{child}")
        self.multi(Delete(path))

    def delete_by_hand(self) -> bool:
        topic = self._some_topic()
        return topic is not None and self.multi(Create(paths.delete_topic(topic)))

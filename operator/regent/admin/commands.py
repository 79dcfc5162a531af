"""Commands for topics and their partitions, and the outcomes of commands.

The code that carries out a command checks it against the cluster. A refusal is a value, never an
exception: it becomes a condition of a resource.
"""

from __future__ import annotations

import enum
import uuid
from collections.abc import Mapping
from typing import Any, ClassVar, Final

import msgspec

from regent.model.partition import FoundPartition, TopicPartition


class CreateTopic(msgspec.Struct, frozen=True):
    """Create a topic.

    Attributes:
        partitions: Number of partitions; with ``assignment``, its size.
        replication_factor: Replicas of each partition; None: the cluster's
            ``default.replication.factor``.
        assignment: Replica lists by partition index, the preferred leader first; None: placed by
            the controller.
        config: Topic configuration.
        topic_id: Id of the new topic, chosen by the caller, which distinguishes the topic from one
            that somebody else creates at the same moment; None: drawn by the controller. Not
            used where topics have no ids (inter.broker.protocol.version below 2.8). A topic that
            exists with this very id counts as created: the first answer was lost.
        awaits_replicas: Whether ``assignment`` may name brokers that are not live: their partitions
            have no leader until one of their replicas starts.
        validate_only: Check everything, and write nothing.
    """

    topic: str
    partitions: int
    replication_factor: int | None = None
    assignment: Mapping[int, tuple[int, ...]] | None = None
    config: Mapping[str, str] = {}
    topic_id: uuid.UUID | None = None
    awaits_replicas: bool = False
    validate_only: bool = False

    order: ClassVar[int] = 1

    @property
    def progress(self) -> str:
        return f"creating the topic with {self.partitions} partitions"


class CreatePartitions(msgspec.Struct, frozen=True):
    """Grow a topic to a total number of partitions.

    Attributes:
        total: Number of partitions afterwards.
        assignment: Replica lists of the *new* partitions by index; None: placed by the controller,
            continuing the pattern that creation began.
        validate_only: Check everything, and write nothing.
    """

    topic: str
    total: int
    assignment: Mapping[int, tuple[int, ...]] | None = None
    validate_only: bool = False

    order: ClassVar[int] = 2

    @property
    def progress(self) -> str:
        return f"growing the topic to {self.total} partitions"


class AlterTopicConfig(msgspec.Struct, frozen=True):
    """Set some keys of a topic's configuration and remove others; all others stay as they are."""

    topic: str
    set: Mapping[str, str] = {}
    remove: tuple[str, ...] = ()

    order: ClassVar[int] = 3

    @property
    def changes(self) -> str:
        """The first changes in one line, for people."""
        changes = [f"{key}={value}" for key, value in self.set.items()]
        changes.extend(f"{key} reset" for key in self.remove)
        text = ", ".join(changes[:5])
        return text if len(changes) <= 5 else f"{text} and {len(changes) - 5} more"

    @property
    def progress(self) -> str:
        return f"changing the configuration ({self.changes})"


class DeleteTopic(msgspec.Struct, frozen=True):
    """Delete a topic. Accepted means: marked for deletion; the view shows when it is gone.

    Attributes:
        topic_id: Id of the topic that is meant: one that was created again under the same name is
            not deleted. None: whichever topic has the name.
        czxid: Transaction that created the node of the topic that is meant, likewise; 0: not known.
            Topics below inter.broker.protocol.version 2.8 have no id. The node is read again.
    """

    topic: str
    topic_id: uuid.UUID | None = None
    czxid: int = 0

    order: ClassVar[int] = 4
    progress: ClassVar[str] = "deleting the topic"


class ReassignTopic(msgspec.Struct, frozen=True):
    """Give partitions of a topic other replicas. Accepted means: the copies have begun or ended;
    the view shows when they are in sync.

    Refused if one of the partitions is being reassigned already.

    Attributes:
        targets: Replica lists by partition index, the preferred leader first.
        topic_id: As in :class:`DeleteTopic`.
    """

    topic: str
    targets: Mapping[int, tuple[int, ...]]
    topic_id: uuid.UUID | None = None

    order: ClassVar[int] = 5

    @property
    def by_partition(self) -> dict[TopicPartition, tuple[int, ...]]:
        """The targets by topic and partition."""
        return {TopicPartition(self.topic, i): target for i, target in self.targets.items()}

    @property
    def progress(self) -> str:
        return f"changing the replicas of {len(self.targets)} partitions"


class DescribeTopicConfigs(msgspec.Struct, frozen=True):
    """Read the explicit configuration of topics."""

    topics: tuple[str, ...]

    order: ClassVar[int] = 0
    progress: ClassVar[str] = "reading the configuration of the topic"


class ElectionType(enum.IntEnum):
    """Which leaders to elect. The values are those of Kafka's ``ElectionType`` (KIP-460)."""

    PREFERRED = 0
    """The first replica of the assignment, if it is in sync."""
    UNCLEAN = 1
    """Any live replica, in sync if there is one: committed records may be lost."""


class ElectLeaders(msgspec.Struct, frozen=True):
    """Elect leaders of partitions (KIP-460).

    Attributes:
        partitions: None: all that an election could change. Those with nothing to change are then
            left out of the answer, as in Kafka.
    """

    election_type: ElectionType
    partitions: tuple[TopicPartition, ...] | None = None

    order: ClassVar[int] = 6
    progress: ClassVar[str] = "electing leaders"


class CordonBrokers(msgspec.Struct, frozen=True):
    """Place new replicas only on the other brokers, as long as these are enough. A cordon ends with
    the term of the controller: send the command again after an election.

    Attributes:
        broker_ids: All brokers to be cordoned, alive or not, sorted.
    """

    broker_ids: tuple[int, ...]

    order: ClassVar[int] = 0

    @property
    def progress(self) -> str:
        return f"cordoning brokers {list(self.broker_ids)}"


UNTHROTTLED: Final = 0
"""Instead of a rate: throttles are removed."""


class AlterPartitionReassignments(msgspec.Struct, frozen=True):
    """Move partitions to other brokers (KIP-455). Each partition has a result of its own.

    Attributes:
        targets: Replica list wanted for each partition, the preferred leader first; None cancels
            the reassignment that is in progress.
        found: Conditions: a partition that has changed since is not moved. A partition without a
            condition is moved in any case.
        throttle: Bytes a second for the copies of these partitions, until the copies end or are
            cancelled; :data:`UNTHROTTLED`: no throttle; None: throttles stay as they are. A
            partition that is being moved to this target already gets the new throttle. A partition
            is not moved if its throttle cannot be set.
    """

    targets: Mapping[TopicPartition, tuple[int, ...] | None]
    found: Mapping[TopicPartition, FoundPartition] = {}
    throttle: int | None = None

    order: ClassVar[int] = 5

    @property
    def progress(self) -> str:
        return f"moving {len(self.targets)} partitions"


TopicCommand = (
    CreateTopic
    | CreatePartitions
    | AlterTopicConfig
    | DeleteTopic
    | ReassignTopic
    | DescribeTopicConfigs
)
"""Commands of custom resources of topics."""

ResourceCommand = TopicCommand | AlterPartitionReassignments | CordonBrokers | ElectLeaders
"""Commands of custom resources of any kind. Each such command has

``order``
    its place among the commands of several resources that are carried out together: lower ones come
    first, equal ones stand side by side;
``progress``
    what is under way while it is carried out, for people.
"""


class Reason(enum.StrEnum):
    """Why a command was refused. The names become condition reasons: changing one breaks users."""

    INVALID_TOPIC_NAME = "InvalidTopicName"
    INVALID_PARTITIONS = "InvalidPartitions"
    INVALID_REPLICATION_FACTOR = "InvalidReplicationFactor"
    INVALID_REPLICA_ASSIGNMENT = "InvalidReplicaAssignment"
    INVALID_CONFIG = "InvalidConfig"
    NOT_ENOUGH_BROKERS = "NotEnoughBrokers"
    BROKERS_UNAVAILABLE = "BrokersUnavailable"
    BROKER_VERSION_UNKNOWN = "BrokerVersionUnknown"
    BROKER_SETTINGS_UNKNOWN = "BrokerSettingsUnknown"
    TOO_LARGE = "TooLarge"
    TOPIC_ALREADY_EXISTS = "TopicAlreadyExists"
    TOPIC_NAME_COLLISION = "TopicNameCollision"
    UNKNOWN_TOPIC = "UnknownTopic"
    TOPIC_MARKED_FOR_DELETION = "TopicMarkedForDeletion"
    TOPIC_DELETION_DISABLED = "TopicDeletionDisabled"
    REASSIGNMENT_IN_PROGRESS = "ReassignmentInProgress"
    CONCURRENT_CHANGE = "ConcurrentChange"
    NOT_CONTROLLER = "NotController"
    CONTROLLER_TOO_OLD = "ControllerTooOld"
    CONTROLLER_REFUSED = "ControllerRefused"
    ZOOKEEPER_UNAVAILABLE = "ZooKeeperUnavailable"
    ZOOKEEPER_REFUSED = "ZooKeeperRefused"
    INTERNAL_ERROR = "InternalError"


TRANSIENT_REASONS = frozenset(
    {
        Reason.NOT_ENOUGH_BROKERS,
        Reason.BROKERS_UNAVAILABLE,
        Reason.BROKER_VERSION_UNKNOWN,
        Reason.BROKER_SETTINGS_UNKNOWN,
        Reason.TOPIC_MARKED_FOR_DELETION,
        Reason.REASSIGNMENT_IN_PROGRESS,
        Reason.CONCURRENT_CHANGE,
        Reason.NOT_CONTROLLER,
        Reason.CONTROLLER_TOO_OLD,
        Reason.CONTROLLER_REFUSED,
        Reason.ZOOKEEPER_UNAVAILABLE,
        Reason.ZOOKEEPER_REFUSED,
        Reason.INTERNAL_ERROR,
    }
)
"""Refusals that may heal without a change of the resource: worth trying again."""


class PartitionResult(msgspec.Struct, frozen=True):
    """The outcome for one partition of a command that names many.

    Attributes:
        error_code: Kafka's; 0 if it was done, or begun.
        message: Empty if it was.
    """

    error_code: int = 0
    message: str = ""


class Accepted(msgspec.Struct, frozen=True):
    """The command's writes are in ZooKeeper.

    Attributes:
        result: The answer to the command. :class:`DescribeTopicConfigs`: topic -> its explicit
            configuration (``dict[str, dict[str, str]]``; unknown topics are left out).
            :class:`ElectLeaders` and :class:`AlterPartitionReassignments`: partition ->
            :class:`PartitionResult`. :class:`ListPartitionReassignments`: partition -> its
            ``ReplicaAssignment``. :class:`AlterUserScramCredentials`: user ->
            :class:`EntityResult`. :class:`UpdateFeatures`: an ``UpdateFeaturesResult``.
            :class:`ControlledShutdown`: a :class:`ControlledShutdownResult`, with Kafka's error
            code if nothing was done.
    """

    result: Any = None


class Rejected(msgspec.Struct, frozen=True):
    """Nothing was written.

    Attributes:
        field: The field of the command concerned, for instance ``replication_factor`` or
            ``config["retention.ms"]``; empty if none.
        message: Names the thing, the value and what to do.
    """

    reason: Reason
    message: str
    field: str = ""


Outcome = Accepted | Rejected

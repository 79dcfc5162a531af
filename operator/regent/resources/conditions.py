"""Conditions of the custom resources: their types, every reason, and when a transition is one.

The types follow kstatus, which Flux and ``kubectl wait`` understand: ``Ready`` is the summary,
``Reconciling`` and ``Stalled`` are abnormal when True and never True together. ``Synced`` and
``Healthy`` are those of a KafkaTopic: does Kafka look as declared, and are all replicas in sync.
``PlanReady``, ``Approved``, ``Executing`` and ``Completed`` are those of a PartitionReassignment,
``Cordoned``, ``LeadersMoved``, ``ReplicasMoved`` and ``Drained`` those of a BrokerDrain.

Reasons are an interface: people put them into alerts and scripts. Their only place is
:class:`ConditionReason`; the table in ``docs/kafkatopic.md`` is checked against it.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Final, Self

from pydantic import AfterValidator, Field

from regent.resources.base import ApiModel

MAX_MESSAGE_LENGTH: Final = 1024
"""Longest message of a condition in characters: status must stay small for ten thousand objects."""


class ConditionType(enum.StrEnum):
    """Types of conditions. Those of a kind are present from the first status write on."""

    READY = "Ready"
    RECONCILING = "Reconciling"
    STALLED = "Stalled"
    SYNCED = "Synced"
    HEALTHY = "Healthy"
    PLAN_READY = "PlanReady"
    APPROVED = "Approved"
    EXECUTING = "Executing"
    COMPLETED = "Completed"
    CORDONED = "Cordoned"
    LEADERS_MOVED = "LeadersMoved"
    REPLICAS_MOVED = "ReplicasMoved"
    DRAINED = "Drained"


class ConditionStatus(enum.StrEnum):
    """Three-valued truth of a condition."""

    TRUE = "True"
    FALSE = "False"
    UNKNOWN = "Unknown"


class ConditionReason(enum.StrEnum):
    """Every reason a condition can carry, with its meaning as ``documentation``.

    The refusals of the controller (``regent.admin.commands.Reason``) appear here under the
    same names.
    """

    documentation: str

    def __new__(cls, value: str, documentation: str) -> Self:
        member = str.__new__(cls, value)
        member._value_ = value
        member.documentation = documentation
        return member

    # Normal states
    PENDING = "Pending", "No Regent has reconciled the resource yet."
    AS_DECLARED = "AsDeclared", "The topic exists exactly as the resource declares it."
    IDLE = "Idle", "Nothing is under way."
    NOT_STALLED = "NotStalled", "Nothing keeps the resource from progressing."
    ALL_IN_SYNC = "AllInSync", "Every partition has a leader and all its replicas in sync."
    CREATING = "Creating", "The topic is being created, or its partitions wait for a first leader."
    CHANGING = "Changing", "A change of partitions or configuration is being carried out."
    REPLICAS_CHANGING = (
        "ReplicasChanging",
        "Partitions get or lose replicas until they have as many as declared.",
    )
    DELETING = "Deleting", "The topic is being deleted."
    PAUSED = "Paused", "The resource asks for a pause: what differs is shown, nothing is written."
    OBSERVED = "Observed", "managementPolicy is Observe: differences are shown, nothing is written."

    # The course of a reassignment
    PLANNING = "Planning", "There is no plan yet."
    PLANNED = "Planned", "There is a valid plan; status.plan has it."
    APPROVAL_NEEDED = (
        "ApprovalNeeded",
        "The plan waits for its approval: spec.approval.planHash has to name it.",
    )
    PLAN_CHANGED = (
        "PlanChanged",
        "spec.approval.planHash names another plan than the one that there is now.",
    )
    PLAN_APPROVED = "PlanApproved", "The plan may be executed."
    PLAN_UNREADABLE = (
        "PlanUnreadable",
        "The stored plan was changed, or a newer Regent stored it; nothing is done.",
    )
    PLAN_OUTDATED = (
        "PlanOutdated",
        "Partitions of the plan are not where they were when it was begun; another one is made.",
    )
    STATUS_UNREADABLE = (
        "StatusUnreadable",
        "The stored status was changed, or a newer Regent stored it; nothing is done.",
    )
    MOVING = "Moving", "Partitions are on their way to their new replicas."
    PAUSING = "Pausing", "A pause is asked for; what is on its way arrives first."
    CANCELLING = "Cancelling", "What was on its way goes back to where it was."
    REASSIGNMENT_CANCELLED = (
        "ReassignmentCancelled",
        "The reassignment was cancelled: nothing is moved any more.",
    )
    REASSIGNED = "Reassigned", "Every partition of the plan has the replicas that it has there."
    REASSIGNMENT_UNDONE = (
        "ReassignmentUndone",
        "What the reassignment had moved is back, as far as it could be.",
    )
    ALREADY_UNDONE = (
        "AlreadyUndone",
        "It was undone, and is to run again: that needs another one.",
    )
    UNDO_WINDOW_OVER = (
        "UndoWindowOver",
        "It was completed longer ago than spec.undoWindowSeconds, and cannot be undone any more.",
    )
    PARTITIONS_DRIFTED = (
        "PartitionsDrifted",
        "Somebody else has moved, deleted or recreated partitions of the plan.",
    )
    MOVES_REFUSED = (
        "MovesRefused",
        "The controller refuses to move partitions; they are tried again.",
    )
    COPIES_STALLED = (
        "CopiesStalled",
        "Copies cannot go on: no leader, a broker that refuses its replica or has lost its log "
        "directory, or no growth for minutes.",
    )
    REMOVING_THROTTLES = (
        "RemovingThrottles",
        "All partitions have arrived; what throttled them is still to be removed.",
    )

    ELECTING_LEADERS = (
        "ElectingLeaders",
        "All partitions have arrived; their preferred leaders are being elected.",
    )

    # The course of a drain
    CORDONING = "Cordoning", "The controller is asked to place no new replicas on the brokers."
    BROKERS_CORDONED = (
        "BrokersCordoned",
        "New replicas are placed on the brokers only if there are too few others.",
    )
    CORDONED_FOR_REGENT = (
        "CordonedForRegent",
        "Regent places new replicas on the brokers only if there are too few others; topics that "
        "brokers and Kafka's tools create may be placed there, and leave again (client mode).",
    )
    CORDON_LIFTED = "CordonLifted", "New replicas may be placed on the brokers."
    LEADERS_REMAIN = "LeadersRemain", "The brokers lead partitions, or are their preferred leaders."
    NO_LEADERS = "NoLeaders", "The brokers lead no partition, and are the preferred leader of none."
    REPLICAS_REMAIN = "ReplicasRemain", "The brokers have replicas."
    NO_REPLICAS = "NoReplicas", "The brokers have no replica."
    REPLICAS_STAY = "ReplicasStay", "The mode is Leadership: replicas are not moved."
    VERIFYING = (
        "Verifying",
        "Nothing is left to be moved; what was moved is not in sync yet, or who leads instead has "
        "not answered.",
    )
    BROKERS_DRAINED = "BrokersDrained", "The brokers have nothing any more that was to be moved."
    BROKERS_UNKNOWN = (
        "BrokersUnknown",
        "None of the brokers is alive or has replicas, and nothing was moved off them: they may be "
        "none of this cluster.",
    )
    UNDOING = "Undoing", "What was moved goes back."
    DRAIN_UNDONE = "DrainUndone", "What the drain had moved is back, as far as it could be."
    DRAIN_TIMED_OUT = (
        "DrainTimedOut",
        "The drain takes longer than spec.timeoutSeconds; it goes on all the same.",
    )

    # Waiting for the cluster
    CONTROLLER_INACTIVE = (
        "ControllerInactive",
        "No Regent that serves the resource is the controller of the Kafka cluster at the moment; "
        "the message says who is.",
    )
    NOT_ANSWERED = (
        "NotAnswered",
        "Another Regent, which serves the resource and is the controller, has not answered it.",
    )
    CLUSTER_LOADING = (
        "ClusterLoading",
        "The controller has just been elected and is still reading the cluster.",
    )
    TOPICS_UNREADABLE = (
        "TopicsUnreadable",
        "The nodes of topics in ZooKeeper cannot be read, so it is not known what they have.",
    )
    NOT_ENOUGH_BROKERS = (
        "NotEnoughBrokers",
        "Fewer brokers are alive than the topic needs replicas.",
    )
    BROKERS_UNAVAILABLE = (
        "BrokersUnavailable",
        "Brokers that the resource names, or that have replicas, are not alive; they are waited "
        "for.",
    )
    BROKERS_UNREACHED = (
        "BrokersUnreached",
        "The controller has not reached live brokers for a quarter of a minute, and they have not "
        "confirmed to it the leadership of partitions; `regent status` and `regent why` say why. A "
        "broker that is only slow does not count, but nothing becomes `Ready` or `Completed` "
        "before the brokers that lead have answered the controller that they do.",
    )
    BROKER_DEFAULTS_UNKNOWN = (
        "BrokerDefaultsUnknown",
        "No broker has said yet what new topics have that do not say it.",
    )
    LEFT_TO_BROKERS = (
        "LeftToBrokers",
        "Brokers create this topic by settings of their own when they first need it. Regent "
        "applies the resource then.",
    )
    BEING_DELETED = (
        "BeingDeleted",
        "The resource is being deleted: Regent does nothing for it any more, and somebody else's "
        "finalizer keeps it.",
    )
    UNKNOWN = "Unknown", "The state in the cluster is not known at the moment."

    # Health
    PARTITIONS_LEADERLESS = (
        "PartitionsLeaderless",
        "Partitions have no leader: none of their in-sync replicas is alive, or none can be "
        "elected.",
    )
    REPLICAS_REFUSED = (
        "ReplicasRefused",
        "Brokers refuse to lead, follow or delete replicas; the message names brokers, partitions "
        "and errors.",
    )
    UNDER_REPLICATED = "UnderReplicated", "Partitions have replicas that are not in sync."

    # Differences
    DRIFTED = "Drifted", "The topic differs from the resource; status.drift lists how."
    TOPIC_NOT_FOUND = "TopicNotFound", "The topic does not exist, and nothing may create it."
    PARTITIONS_DECREASE = (
        "PartitionsDecrease",
        "The topic has more partitions than declared; Kafka cannot remove partitions.",
    )
    REPLICAS_MISMATCH = (
        "ReplicasMismatch",
        "The topic has another replication factor than declared, and it cannot be changed; the "
        "message says why.",
    )
    REPLICA_ASSIGNMENT_MISMATCH = (
        "ReplicaAssignmentMismatch",
        "Existing partitions have other replicas than declared; a KafkaTopic does not move them.",
    )

    # Ownership
    RESOURCE_CONFLICT = (
        "ResourceConflict",
        "Another resource owns the same topic, is older, or would undo what this one asks for; "
        "this one changes nothing.",
    )
    OTHER_CLUSTER = (
        "OtherCluster",
        "The resource belongs to another Kafka cluster than the one that Regent controls.",
    )
    TOPIC_DELETED_EXTERNALLY = (
        "TopicDeletedExternally",
        "Somebody else deleted the topic with its data; onForeignDeletion says what follows.",
    )
    ADOPTION_PREVIEW = (
        "AdoptionPreview",
        "The topic existed before; status.drift shows what adopting it would change.",
    )
    ADOPTION_REFUSED = (
        "AdoptionRefused",
        "The topic existed before and adoptionPolicy is Refuse.",
    )
    DELETION_PROTECTED = (
        "DeletionProtected",
        "The resource is kept because its topic exists and must not be deleted.",
    )

    # Refusals, by Regent's own checks or by the controller
    INVALID_SPEC = "InvalidSpec", "The resource does not match the schema of this Regent."
    INVALID_TOPIC_NAME = "InvalidTopicName", "Kafka does not allow this topic name."
    TOPIC_NAME_NOT_ALLOWED = (
        "TopicNameNotAllowed",
        "The rules of Regent (topic_name_rules) do not let the namespace declare the topic.",
    )
    INVALID_PARTITIONS = (
        "InvalidPartitions",
        "The number of partitions is impossible, or one of them is missing in ZooKeeper.",
    )
    INVALID_REPLICATION_FACTOR = (
        "InvalidReplicationFactor",
        "The replication factor is impossible.",
    )
    INVALID_REPLICA_ASSIGNMENT = (
        "InvalidReplicaAssignment",
        "The replica assignment is impossible.",
    )
    INVALID_CONFIG = (
        "InvalidConfig",
        "A configuration key is unknown, or brokers of this cluster could not load its value.",
    )
    BROKER_VERSION_UNKNOWN = (
        "BrokerVersionUnknown",
        "A broker has not said yet which version it runs, and not every version can load the "
        "configuration.",
    )
    BROKER_SETTINGS_UNKNOWN = (
        "BrokerSettingsUnknown",
        "No broker has said yet, or none may tell Regent, whether it runs with "
        "delete.topic.enable=false.",
    )
    WRITE_REFUSED = (
        "WriteRefused",
        "The API server refuses what Regent writes to the resource; the Event says why.",
    )
    TOO_LARGE = "TooLarge", "The topic or the plan does not fit into what can be stored at a time."
    TOPIC_ALREADY_EXISTS = (
        "TopicAlreadyExists",
        "Somebody else created the topic at the same moment; Regent tries again.",
    )
    TOPIC_NAME_COLLISION = (
        "TopicNameCollision",
        "The name differs from an existing topic only in '.' against '_'.",
    )
    UNKNOWN_TOPIC = "UnknownTopic", "The topic or the partition does not exist."
    TOPIC_MARKED_FOR_DELETION = (
        "TopicMarkedForDeletion",
        "A topic of this name is being deleted; its successor is created afterwards.",
    )
    TOPIC_DELETION_DISABLED = (
        "TopicDeletionDisabled",
        "The brokers run with delete.topic.enable=false.",
    )
    REASSIGNMENT_IN_PROGRESS = (
        "ReassignmentInProgress",
        "Replicas of the topic are being moved; what depends on them waits.",
    )
    INVALID_PLAN_DOCUMENT = (
        "InvalidPlanDocument",
        "planJSON is no file of kafka-reassign-partitions.",
    )
    RACKS_LOST = "RacksLost", "Partitions would be spread over fewer racks than now."
    BELOW_MIN_INSYNC_REPLICAS = (
        "BelowMinInsyncReplicas",
        "Partitions would get fewer replicas than min.insync.replicas.",
    )
    INVALID_REBALANCE = (
        "InvalidRebalance",
        "spec.rebalance names what the cluster does not have, or contradicts itself.",
    )
    GOALS_INFEASIBLE = (
        "GoalsInfeasible",
        "No plan meets the hard goals of spec.rebalance; status.problems has the reasons.",
    )
    PLANNER_MISSING = (
        "PlannerMissing",
        "spec.rebalance needs a planner that is not there: regent[planner], or what Spark needs.",
    )
    HISTORY_UNUSABLE = (
        "HistoryUnusable",
        "The history of spec.rebalance is missing, too old, or cannot be read; it is tried again.",
    )
    PLANNER_FAILED = "PlannerFailed", "The planner has ended without a plan; it is tried again."
    CONCURRENT_CHANGE = "ConcurrentChange", "Somebody else changed the topic at the same moment."
    NOT_CONTROLLER = "NotController", "The controller moved while the change was being made."
    CONTROLLER_TOO_OLD = (
        "ControllerTooOld",
        "The broker that is the controller is of a Kafka version that cannot do what is asked of "
        "it (client mode).",
    )
    CONTROLLER_REFUSED = (
        "ControllerRefused",
        "The broker that is the controller does not let Regent's user do what is asked of it; the "
        "message names the missing right (client mode).",
    )
    ZOOKEEPER_UNAVAILABLE = "ZooKeeperUnavailable", "ZooKeeper did not answer in time."
    ZOOKEEPER_REFUSED = (
        "ZooKeeperRefused",
        "ZooKeeper refused to read or write a znode; the message names it and the error.",
    )
    INTERNAL_ERROR = "InternalError", "The controller failed unexpectedly; its log says why."


def _check_rfc3339(text: str) -> str:
    """The API server's ``date-time`` accepts the year 0 and offsets of days."""
    if datetime.fromisoformat(text).tzinfo is None:
        raise ValueError("it has no time zone")
    return text


Rfc3339 = Annotated[
    str, AfterValidator(_check_rfc3339), Field(json_schema_extra={"format": "date-time"})
]
"""A point in time as Kubernetes writes it: UTC, whole seconds, trailing Z."""


class Condition(ApiModel):
    """One condition, shaped like metav1.Condition."""

    type: str = Field(description="Name of the condition.", max_length=64)
    status: ConditionStatus = Field(description="Whether the condition holds.")
    observed_generation: int = Field(
        description="metadata.generation of the resource that the condition was computed for.", ge=0
    )
    last_transition_time: Rfc3339 = Field(description="When `status` last changed.")
    reason: str = Field(description="Stable name of the cause, for programs.", max_length=64)
    message: str = Field(
        description="What happened and what to do about it, for people.",
        max_length=MAX_MESSAGE_LENGTH,
    )


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a condition shall say, without the times and generations that go with it."""

    type: ConditionType
    status: ConditionStatus
    reason: ConditionReason
    message: str


def update_conditions(
    previous: Sequence[Condition],
    verdicts: Sequence[Verdict],
    *,
    generation: int,
    now: datetime,
) -> tuple[Condition, ...]:
    """The conditions that say what ``verdicts`` say.

    ``lastTransitionTime`` is kept where ``status`` stays: a new message is not a transition.
    Conditions of other types are dropped, the order is that of ``verdicts``.
    """
    before = {condition.type: condition for condition in previous}
    updated: list[Condition] = []
    for verdict in verdicts:
        old = before.get(verdict.type)
        kept = old is not None and old.status is verdict.status
        updated.append(
            Condition(
                type=verdict.type,
                status=verdict.status,
                observed_generation=generation,
                last_transition_time=old.last_transition_time
                if old is not None and kept
                else rfc3339(now),
                reason=verdict.reason,
                message=shorten(verdict.message, limit=MAX_MESSAGE_LENGTH),
            )
        )
    return tuple(updated)


def find_condition(conditions: Sequence[Condition], type_: ConditionType) -> Condition | None:
    """The condition of that type, or None."""
    return next((condition for condition in conditions if condition.type == type_), None)


def rfc3339(moment: datetime) -> str:
    """``moment`` (aware) as Kubernetes writes it: UTC, whole seconds."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def enumerate_some(items: Sequence[str], *, limit: int) -> str:
    """The first ``limit`` of the items in one line, and how many more there are."""
    more = f"; and {len(items) - limit} more" if len(items) > limit else ""
    return "; ".join(items[:limit]) + more


def shorten(text: str, *, limit: int) -> str:
    """``text`` cut to ``limit`` characters, with an ellipsis if something was cut off."""
    return text if len(text) <= limit else text[: limit - 1] + "…"

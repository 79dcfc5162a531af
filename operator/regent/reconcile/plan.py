"""What comes out of reconciling a resource: plain values.

Reconciling is level-triggered. The request holds everything that is known now; nothing says which
event led to it. The answer is a plan, which somebody else carries out in this order: finalizer
added, status (if ``status_first``), commands, status, finalizer removed. What is stored for the
sake of the commands (the finalizer, the status of ``status_first``) must be stored for them to be
sent: if it is refused or outranked, none is.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from regent.admin.commands import ResourceCommand
from regent.planning.orders import PlanningOrder

StatusT = TypeVar("StatusT")

DEFINITION_ASKED_AGAIN_S: Final = 60.0
"""After so long Regent asks again whether a deleted resource goes with its definition: no event
says so."""


class FinalizerAction(enum.Enum):
    """What becomes of the resource's finalizer."""

    LEAVE = enum.auto()
    ADD = enum.auto()
    REMOVE = enum.auto()


class EventReason(enum.StrEnum):
    """Reasons of Kubernetes Events beside those of conditions. Stable: people filter by them."""

    TOPIC_CREATED = "TopicCreated"
    TOPIC_ADOPTED = "TopicAdopted"
    PARTITIONS_ADDED = "PartitionsAdded"
    CONFIG_CHANGED = "ConfigChanged"
    DRIFT_DETECTED = "DriftDetected"
    DRIFT_REVERTED = "DriftReverted"
    REPLICA_CHANGE_STARTED = "ReplicaChangeStarted"
    REPLICAS_CHANGED = "ReplicasChanged"
    TOPIC_DELETION_STARTED = "TopicDeletionStarted"
    TOPIC_DELETION_CONTINUES = "TopicDeletionContinues"
    TOPIC_DELETED = "TopicDeleted"
    TOPIC_DELETED_EXTERNALLY = "TopicDeletedExternally"
    TOPIC_RECREATED_EXTERNALLY = "TopicRecreatedExternally"
    TOPIC_RETAINED = "TopicRetained"
    TOPIC_HANDED_OVER = "TopicHandedOver"
    REASSIGNMENT_PLANNED = "ReassignmentPlanned"
    REASSIGNMENT_STARTED = "ReassignmentStarted"
    REASSIGNMENT_PAUSED = "ReassignmentPaused"
    REASSIGNMENT_CANCELLED = "ReassignmentCancelled"
    REASSIGNMENT_COMPLETED = "ReassignmentCompleted"
    REASSIGNMENT_UNDO_STARTED = "ReassignmentUndoStarted"
    REASSIGNMENT_UNDONE = "ReassignmentUndone"
    DRAIN_STARTED = "DrainStarted"
    DRAIN_PAUSED = "DrainPaused"
    DRAIN_COMPLETED = "DrainCompleted"
    DRAIN_UNDONE = "DrainUndone"
    NOT_STORED_AS_WRITTEN = "NotStoredAsWritten"
    RIGHT_LOST = "RightLost"


@dataclass(frozen=True, slots=True)
class PlannedEvent:
    """A Kubernetes Event to be recorded for the resource.

    Attributes:
        is_occurrence: Something that happened once and is recorded each time, even in the same
            words: the creation of a topic, its deletion. Other events are not repeated within a
            short time.
        is_logged: The log says it, too: what was done is given up, and the status may soon be about
            something else.
    """

    reason: str
    message: str
    is_warning: bool = False
    is_occurrence: bool = False
    is_logged: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan(Generic[StatusT]):
    """What has to be done for a resource now.

    Attributes:
        status: The status to be shown if it differs from the present one; None: leave it alone.
        status_if_held: The status to be shown if the API server refuses to have the finalizer
            removed; None: leave it alone.
        keeps_unread: Whether fields of the stored status that ``status`` does not have stay: they
            could not be read, and nothing else says them.
        commands: For the controller, in order.
        status_first: Whether the status must be stored before the commands are sent; if it
            cannot be stored, they are not sent.
        finalizer: Adding comes before the commands, removing after everything else.
        events: To be recorded once the plan is carried out.
        is_to_be_deleted: Whether the object itself is to be deleted, unless it changes meanwhile.
        requeue_after_s: When to requeue even if nothing happens; None: no need.
        asks_about_definition: Whether the plan is another one if the resource is deleted together
            with its definition. To be found out before anything is done; if there are commands, the
            next plan counts, which is made with the answer.
        planning: The plan that is to be made for the resource beside, or whose outcome it still
            needs; None: none. The outcome is news for the resource.
    """

    status: StatusT | None = None
    status_if_held: StatusT | None = None
    keeps_unread: bool = False
    commands: tuple[ResourceCommand, ...] = ()
    status_first: bool = False
    finalizer: FinalizerAction = FinalizerAction.LEAVE
    events: tuple[PlannedEvent, ...] = ()
    is_to_be_deleted: bool = False
    requeue_after_s: float | None = None
    asks_about_definition: bool = False
    planning: PlanningOrder | None = None

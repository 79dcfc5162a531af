"""Why leadership changes: the vocabulary of the state-change trail.

A cause is named where it is known, around the work that follows from it::

    with context.trail.because(CauseKind.BROKER_FAILED, brokers=dead):
        await on_broker_failure(active, ...)

What is not named so has the kind OTHER, with the event that was being processed. How each change
was made (which election, or whose write) is a :class:`ChangeKind`, which the state machines name.
"""

from __future__ import annotations

import enum

import msgspec


class CauseKind(enum.StrEnum):
    """What happened in the cluster."""

    CONTROLLER_FAILOVER = "controller-failover"
    """This controller was elected, and brought into order what it found."""
    BROKER_FAILED = "broker-failed"
    """A broker's registration is gone, as a rule because its ZooKeeper session has ended."""
    BROKER_STARTED = "broker-started"
    """A broker has registered: it is new, or has returned."""
    BROKER_BOUNCED = "broker-bounced"
    """A broker has registered anew, and its absence was never observed."""
    CONTROLLED_SHUTDOWN = "controlled-shutdown"
    """A broker asked to be shut down (ControlledShutdown): it is about to stop."""
    SHUTDOWN_GIVEN_UP = "shutdown-given-up"
    """A broker had asked to be shut down, and lives on."""
    LOG_DIR_FAILED = "log-dir-failed"
    """A broker has lost a log directory."""
    ISR_CHANGE = "isr-change"
    """Leaders announced that they had changed ISRs in ZooKeeper, or asked for the change."""
    STATE_UNREPORTED = "state-unreported"
    """A take-over had a state from a copy that was wrong, which was found later."""
    TOPIC_CREATED = "topic-created"
    PARTITIONS_ADDED = "partitions-added"
    TOPIC_DELETION = "topic-deletion"
    """The topic is marked for deletion, and its replicas are being stopped and deleted."""
    TOPIC_VANISHED = "topic-vanished"
    """Somebody else removed the topic's node."""
    UNCLEAN_ELECTION_ENABLED = "unclean-election-enabled"
    """unclean.leader.election.enable became true for the topic or the cluster."""
    ELECTION_REQUESTED = "election-requested"
    """Somebody asked for an election of leaders, by ``/admin/preferred_replica_election`` or by a
    command."""
    LEADER_IMBALANCE = "leader-imbalance"
    """Too many partitions were not led by their preferred leaders (leader.imbalance.*)."""
    REASSIGNMENT = "reassignment"
    """A reassignment began, went on, ended or was cancelled."""
    REQUEST_REFUSED = "request-refused"
    """A broker had refused a LeaderAndIsr: a new leader epoch makes it look at the partition."""
    LEADER_OF_FORMER_TOPIC = "leader-of-former-topic"
    """The leader had refused to lead, as what it has is a replica of another topic of that name."""
    ELECTION_REPEATED = "election-repeated"
    """An election had failed at ZooKeeper or at what was in a znode, and was tried again."""
    OTHER = "other"
    """The event that was being processed says what."""


class ChangeKind(enum.StrEnum):
    """How leadership was changed."""

    FIRST_LEADER = "first-leader"
    """The state znode was created: the first live replica leads."""
    ELECTED_OFFLINE = "elected-offline"
    """An election from the ISR, because there was no live leader."""
    ELECTED_UNCLEAN = "elected-unclean"
    """An election from outside the ISR: committed records may be lost."""
    ELECTED_REASSIGN = "elected-reassign"
    ELECTED_PREFERRED = "elected-preferred"
    ELECTED_CONTROLLED_SHUTDOWN = "elected-controlled-shutdown"
    REPLICA_OFFLINE = "replica-offline"
    """The controller took a replica that is offline out of the ISR, and left the partition without
    a leader if that replica led."""
    ISR_REQUESTED = "isr-requested"
    """Its leader asked the controller for another ISR (AlterPartition), which was granted."""
    WRITTEN = "written"
    """Another write of the controller."""
    OBSERVED = "observed"
    """The state was read and is another one than was known: its leader has changed the ISR, or it
    is a write of this controller whose answer was lost."""
    UNREADABLE = "unreadable"
    """The state znode cannot be read any more, so the leadership is not known."""


class BrokerLife(msgspec.Struct, frozen=True):
    """One life of a broker.

    Attributes:
        epoch: Its broker epoch (czxid of its registration).
        session_id: The ZooKeeper session of its registration; 0 if not known.
    """

    broker_id: int
    epoch: int
    session_id: int


class Cause(msgspec.Struct, frozen=True):
    """Why leadership changed. One object is shared by all changes that follow from it.

    Attributes:
        event: Name of the event that was being processed.
        time_ms: When its processing began, in milliseconds since the epoch.
        brokers: The brokers that the cause is about, those whose partitions did not change
            included.
    """

    kind: CauseKind
    event: str
    time_ms: int
    brokers: tuple[BrokerLife, ...] = ()

"""Effects of a controller beside those of ZooKeeper (:mod:`regent.zk_data.effects`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from regent.controller.state.standby_copy import StandbyCopy
from regent.model.cluster import Broker
from regent.model.partition import FoundPartition, TopicPartition
from regent.model.topic_config import BrokerFacts
from regent.protocol.control_requests import ControlRequests
from regent.zk_data.effects import Effect


class ReadStandby(Effect[StandbyCopy | None], frozen=True):
    """``StandbyPort.read``: what this process has kept of the cluster, and has just brought up to
    date. None if there is none, or a doubt about it: then ZooKeeper is to be read."""


class UpdateChannels(Effect[None], frozen=True):
    """Open channels to brokers and close others.

    A broker in both gets a fresh channel: its queue is dropped, as after a bounce.

    Attributes:
        controller_epoch: The term for which the channels are opened; what they report carries it.
        epoch_zk_version: dataVersion of ``/controller_epoch`` in this term; None: this process is
            not the controller, and nothing may be sent through the channels.
    """

    controller_epoch: int
    epoch_zk_version: int | None
    opened: Sequence[Broker]
    closed: Sequence[int] = ()


class ReaddressChannels(Effect[None], frozen=True):
    """Brokers are registered with other endpoints, in the same lives: their channels keep what
    waits, and the connections that they have, and connect there from the next time on."""

    brokers: Sequence[Broker]


class InterBrokerProtocol(Effect[tuple[int, int]], frozen=True):
    """The lowest inter.broker.protocol.version over the brokers, as (major, minor).

    Waits for channels that are just being opened, within the driver's bound; a broker that does not
    answer counts with what is known of it (its registration, or the other brokers).
    """


class ReportedFacts(Effect[Sequence[BrokerFacts]], frozen=True):
    """What brokers have said about themselves by now, each in the life that is asked about.

    Waits for nothing, and leaves out those that have not answered. ``BrokerFactsLearned`` says the
    same, but only when everything that was queued before it is done.
    """

    brokers: Sequence[Broker]


class SilentBrokers(Effect[Sequence[int]], frozen=True):
    """Live brokers whose last request failed, or that have not answered any in this term or since
    they started. Waits for nothing."""


class SendRequests(Effect[None], frozen=True):
    """Enqueue a batch to the brokers' channels. Answers come back as events."""

    requests: ControlRequests


class ArmTimer(Effect[None], frozen=True):
    """Deliver ``event`` to the controller after a delay; replaces an armed timer of that name."""

    name: str
    after_ms: int
    event: Any


class CancelTimer(Effect[None], frozen=True):
    """Disarm a timer. One that is not armed is ignored."""

    name: str


class Enqueue(Effect[None], frozen=True):
    """Append an event to the controller's own queue."""

    event: Any


class Respond(Effect[None], frozen=True):
    """Answer a request that came in with an event.

    Attributes:
        reply_to: The token that the event carried.
        answer: For commands, a tuple of outcomes in the order of the commands.
    """

    reply_to: Any
    answer: Any


class PublishView(Effect[None], frozen=True):
    """Publish what has changed: the brokers, topics of the context, and more.

    Attributes:
        topics: Names to be published in any case (gone ones included): the context does not know
            of a changed configuration, for instance. None: everything.
    """

    topics: frozenset[str] | None


class GiveWay(Effect[None], frozen=True):
    """Let others have the controller's loop: the work so far has taken a while."""


class AskReassignments(Effect[Mapping[TopicPartition, tuple[int, str]]], frozen=True):
    """``AdminRequestsPort.alter_partition_reassignments``: asks a broker that is the controller.

    The driver throws ``BrokerQuestionError`` into the coroutine when there is no answer.
    """

    broker: Broker
    targets: Mapping[TopicPartition, tuple[int, ...] | None]
    found: Mapping[TopicPartition, FoundPartition]


class AskElections(Effect[Mapping[TopicPartition, tuple[int, str]]], frozen=True):
    """``AdminRequestsPort.elect_leaders``, likewise."""

    broker: Broker
    election_type: int
    partitions: tuple[TopicPartition, ...] | None


class CurrentTime(Effect[int], frozen=True):
    """Milliseconds since the epoch."""


class OwnSession(Effect[int], frozen=True):
    """Id of our ZooKeeper session, 0 if there is none."""


class StillAbsent(Effect[tuple[int, ...]], frozen=True):
    """Which of these sessions are of replicas that are, now, what an event has said of them.

    Attributes:
        suspected: Of replicas that were suspected.
        unheard: Of replicas that did not answer, and were never heard.
    """

    suspected: tuple[int, ...]
    unheard: tuple[int, ...]


class Contend(Effect[None], frozen=True):
    """Take part in the election among the replicas of Regent, from now on. Its outcome comes as
    events. Doing so already is fine."""


class QueueUpAgain(Effect[None], frozen=True):
    """Give the place in the election among the replicas up, if this one is elected, and queue up
    behind the others. What comes of it comes as events."""


class Resigned(Effect[None], frozen=True):
    """The controller is no longer active: close all channels (queues are dropped), disarm all
    timers, publish an empty view."""

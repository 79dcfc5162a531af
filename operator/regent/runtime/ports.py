"""What the controller core needs of the world, as protocols.

Each has two implementations that pass one contract test suite: the real one (kazoo, sockets) and
the deterministic one of the simulation.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Protocol

from regent.admin.commands import Outcome
from regent.controller.broker_requests import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
    AlterPartitionRequest,
    AlterPartitionResponse,
)
from regent.controller.commands import Command
from regent.controller.state.standby_copy import StandbyCopy
from regent.controller.view import ClusterView, TopicView
from regent.model.cluster import Broker
from regent.model.partition import TopicPartition
from regent.model.replica_sizes import ReplicaSizes
from regent.model.topic_config import BrokerFacts
from regent.protocol.control_requests import ControlRequests, ControlResponse
from regent.runtime.zookeeper_read_port import ZooKeeperReadPort
from regent.zk_data.operations import (
    Check,
    Operation,
    SessionState,
    WatchedEvent,
    WatchedEventType,
    WriteResult,
)


class ZooKeeperPort(ZooKeeperReadPort, Protocol):
    """A ZooKeeper session for sets of znodes. Paths are relative to the session's chroot.

    Every method raises ``SessionExpiredError`` once the session it was called under is gone,
    ``ZooKeeperUnavailableError`` when no server answered within the client's bound, and
    ``UnexpectedZooKeeperError`` for an answer outside the documented results. While the connection
    is suspended, calls wait for it to come back and try again: reads and conditional writes are
    safe to repeat, and what a repeated write reports (``BAD_VERSION``, ``NODE_EXISTS``) is the
    caller's to resolve by reading, as in Kafka.
    """

    @property
    def session_id(self) -> int:
        """Id of the current session, 0 if there is none."""
        ...

    async def multi(self, operations: Sequence[Operation]) -> Sequence[WriteResult]:
        """All operations in one transaction: either all are Written, or none is applied and the
        culprit carries its error while the others are ``ROLLED_BACK``. If the transaction is too
        large to be sent, the culprit is the largest operation.

        ``exist_ok`` and ``missing_ok`` are not honoured here. A connection loss raises
        ``ZooKeeperUnavailableError`` at once: whether the transaction took place is unknown, and
        only the caller can find out.

        One that only checks does not wait for what was to be sent before.
        """
        ...

    async def write(
        self, operations: Sequence[Operation], *, guard: Check, divides: bool = True
    ) -> Sequence[WriteResult]:
        """Each operation on its own, all fenced by ``guard``; results in order. What a server
        refuses for one node (``NO_AUTH``, ``QUOTA_EXCEEDED``) is the result of that operation.

        Many operations travel in one transaction behind one check; one that conflicts is reported
        and the rest is tried again without it. Operations of one call must not depend on each
        other. A dependent write belongs into a later call.

        Args:
            divides: Whether the rest of a transaction with a conflict is tried again. Otherwise it
                is ``ROLLED_BACK``: for a caller who reads again whatever was not written, one
                failed transaction costs less than finding each conflict in it. Such a caller may
                also write one node several times, each on condition of the version before.

        Raises:
            ControllerMovedError: If the guard does not hold. Operations sent before that was known
                may have been applied (under the guard).
        """
        ...


class RecursiveWatchesPort(Protocol):
    """Persistent recursive watches of the session that :class:`ZooKeeperPort` uses.

    Each stands on a path and reports what happens to that node and to every node below it, over and
    over. Methods raise what those of :class:`ZooKeeperPort` do, and
    ``RecursiveWatchesUnsupportedError`` where the server is older than 3.6.

    No one-shot watch may be set on the very path of a recursive one: it would replace it.
    """

    def listen(self, listener: Callable[[], None]) -> None:
        """Call ``listener`` in the loop when there is something to :meth:`take`."""
        ...

    async def add(self, paths: Sequence[str]) -> None:
        """Watch these nodes, which need not exist, and all below them."""
        ...

    async def restore(self) -> None:
        """Set all watches again, after the connection was lost or under a new session. Nothing is
        reported of what has happened in between."""
        ...

    async def remove(self, paths: Sequence[str]) -> None:
        """Undo :meth:`add`."""
        ...

    def take(self) -> Mapping[str, WatchedEventType]:
        """The nodes to which something has happened since this was last called, each with what was
        the last; in the order in which they were first reported.

        When an answer of ZooKeeper has come back, everything is in here that happened before the
        server gave it.
        """
        ...


class StandbyPort(Protocol):
    """What this process has kept of the cluster while it was not the controller, and keeps."""

    async def read(self) -> StandbyCopy | None:
        """A copy that has all that ZooKeeper has answered or reported on this session so far. None
        if there is none, or a doubt about it; raises nothing."""
        ...

    def resigned(self) -> None:
        """This process is not the controller any more."""
        ...


class BrokerChannelsPort(Protocol):
    """One channel to each broker, which holds what the broker still has to be informed of. Answers
    come back through a callback."""

    def update(
        self,
        *,
        opened: Sequence[Broker],
        closed: Sequence[int],
        controller_epoch: int,
        epoch_zk_version: int | None,
    ) -> None:
        """Close channels, open others; a broker in both gets a fresh one, which is empty.

        What the channels report of themselves carries ``controller_epoch``. By
        ``epoch_zk_version``, the dataVersion of ``/controller_epoch`` in this term, it is made sure
        that the term goes on where it is in doubt. With None this process is not the controller:
        brokers are asked what they run, and are sent nothing.
        """
        ...

    def readdress(self, brokers: Sequence[Broker]) -> None:
        """Connect elsewhere from now on, see ``effects.ReaddressChannels``."""
        ...

    def stand_by(self, brokers: Iterable[Broker]) -> None:
        """Have connections to these brokers, and to no others, through which nothing is sent, so
        that ``update`` finds them open. Does nothing between ``update`` and ``close_all``."""
        ...

    def listen(self, changed: Callable[[], None]) -> None:
        """Have it called when ``expected_protocol`` may have another answer."""
        ...

    def expected_protocol(self) -> tuple[int, int] | None:
        """The inter.broker.protocol.version that ``inter_broker_protocol`` would find by what the
        brokers of ``stand_by`` have reported by now; None while one that is being connected to may
        still report another one. May be called from any thread."""
        ...

    def send(self, requests: ControlRequests) -> None:
        """Add a batch to what its receivers have to be informed of. Never blocks; receivers
        without a channel are left out."""
        ...

    async def inter_broker_protocol(self) -> tuple[int, int]:
        """Lowest inter.broker.protocol.version, see ``effects.InterBrokerProtocol``."""
        ...

    def facts(self, brokers: Sequence[Broker]) -> Sequence[BrokerFacts]:
        """What these have said about themselves by now, see ``effects.ReportedFacts``."""
        ...

    def silent(self) -> Sequence[int]:
        """Brokers that do not answer at the moment, see ``effects.SilentBrokers``."""
        ...

    @property
    def last_batch(self) -> int:
        """The number of the newest batch that was sent, or waits."""
        ...

    def unanswered(self) -> Mapping[int, int]:
        """Brokers that have not answered something of leadership, or whose answer has not been
        read, each with the number of the oldest batch that this was in."""
        ...

    def acknowledged(self) -> Mapping[int, int]:
        """The newest batch of which each broker has acknowledged all metadata, as well as that of
        all batches before; -1 for a broker that has not acknowledged any metadata."""
        ...

    def answers_read(self, *, unread: Callable[[], Collection[int]]) -> None:
        """Whatever brokers have answered of leadership is read by now.

        Args:
            unread: Returns the brokers of which that does not hold.
        """
        ...

    def close_all(self) -> None:
        """Close every channel and drop what waits; no answer is delivered afterwards."""
        ...


class ConnectionListener(Protocol):
    """What the controller's connections report. Called in the controller's loop."""

    def session_changed(self, state: SessionState) -> None:
        """The ZooKeeper session is in another state."""
        ...

    def watch_fired(self, watched: WatchedEvent) -> None:
        """A watch has fired."""
        ...

    def responded(self, response: ControlResponse) -> None:
        """A broker has answered a control request."""
        ...

    def channel_failed(self, broker: Broker, controller_epoch: int, reason: BaseException) -> None:
        """A defect has ended the channel to a broker that was opened in the named term."""
        ...

    def protocol_version_changed(self, version: tuple[int, int], controller_epoch: int) -> None:
        """The lowest inter.broker.protocol.version of the brokers is another one."""
        ...

    def broker_answered(self, broker: Broker, facts: BrokerFacts) -> None:
        """A broker has said what it runs and how it is set up, and that is new."""
        ...

    def elected(self) -> None:
        """This process is now the elected replica of Regent."""
        ...

    def election_lost(self) -> None:
        """This process is no longer the elected replica of Regent."""
        ...


class ConnectionsPort(Protocol):
    """The controller's connections to ZooKeeper and to the brokers."""

    @property
    def zookeeper(self) -> ZooKeeperPort: ...

    @property
    def recursive_watches(self) -> RecursiveWatchesPort: ...

    @property
    def channels(self) -> BrokerChannelsPort: ...

    def is_fenced(self) -> bool:
        """Whether ZooKeeper has not answered for so long that it may have expired the session.
        May be called from any thread."""
        ...

    def last_contact(self) -> float:
        """When the last request was sent that ZooKeeper has answered, by ``time.monotonic()``;
        minus infinity if none was. May be called from any thread."""
        ...

    def session_problem(self) -> str | None:
        """Why there is no connection to ZooKeeper, as far as is known. May be called from any
        thread."""
        ...

    def election_problem(self) -> str | None:
        """Why this process cannot take part in the election among the replicas, or None. May be
        called from any thread."""
        ...

    def defect(self) -> str | None:
        """Why sessions or the election go on only in another process, or None. May be called from
        any thread."""
        ...

    def queue_sizes(self) -> Mapping[int, int]:
        """What brokers still have to be informed of, by broker, in partitions."""
        ...

    def channel_problems(self) -> Mapping[int, str]:
        """Why brokers are not reached, of those that are not. May be called from any thread."""
        ...

    def uninformed(self) -> Mapping[int, frozenset[TopicPartition]]:
        """Brokers that have been out of reach for a while, each with the partitions of whose
        leadership it has not been informed, if there are any. What has not changed is the same
        object as before."""
        ...

    async def start(self) -> None:
        """Wait for a ZooKeeper session."""
        ...

    def contend(self) -> None:
        """Take part in the election among the replicas, from the first call on."""
        ...

    def queue_up_again(self) -> None:
        """Be the last one in that election, if this replica is elected."""
        ...

    async def close(self) -> None:
        """Close the channels, leave the election and end the session."""
        ...


Connect = Callable[[ConnectionListener], ConnectionsPort]
"""Makes the connections of a controller. Called in the controller's loop."""


class ViewPort(Protocol):
    """Publishes what the controller has changed."""

    def publish(self, topics: frozenset[str] | None) -> None:
        """See ``effects.PublishView``."""
        ...

    def reset(self) -> None:
        """The controller is no longer active."""
        ...


class ControllerPort(Protocol):
    """The controller as everything outside its thread sees it: commands in, a view out."""

    @property
    def view(self) -> ClusterView:
        """The newest view. Immutable; reading it takes no lock."""
        ...

    async def submit(self, commands: Sequence[Command]) -> Sequence[Outcome]:
        """Carry commands out, together and in order; may be awaited in any event loop. Who stops
        waiting takes back what has not begun by then.

        Never raises for what a command asks: a controller that is not active answers
        ``Rejected(NOT_CONTROLLER)``.
        """
        ...

    def subscribe(self, listener: Callable[[frozenset[str] | None], None]) -> None:
        """Call ``listener`` after each new view with the names of the topics that changed (none of
        them if only the brokers did), None for "anything". It is called in the controller's thread
        and must not block."""
        ...


class ReplicaSizesPort(Protocol):
    """Asks brokers how much they have of partitions."""

    async def replica_sizes(
        self, broker: Broker, partitions: Collection[TopicPartition]
    ) -> ReplicaSizes:
        """How many bytes a broker has of these partitions.

        Raises:
            BrokerQuestionError: If it does not say.
        """
        ...


class BrokerQuestionsPort(ReplicaSizesPort, Protocol):
    """Asks brokers as a client does, on connections of its own: no answer of theirs keeps the
    controller waiting. Everything belongs into one event loop."""

    def close(self) -> None:
        """Close all connections. The next question opens another one."""
        ...


class ControllerRequests(Protocol):
    """The controller as the endpoint sees it. Everything belongs into the controller's loop.

    Every request is answered, also by a process that is not, or no longer, the controller: with
    NOT_CONTROLLER.
    """

    @property
    def view(self) -> ClusterView:
        """The newest view."""
        ...

    async def alter_partition(self, request: AlterPartitionRequest) -> AlterPartitionResponse:
        """See :mod:`regent.controller.partitions.alter_partition`."""
        ...

    async def allocate_producer_ids(
        self, request: AllocateProducerIdsRequest
    ) -> AllocateProducerIdsResponse:
        """See :mod:`regent.controller.producer_ids.allocate_producer_ids`."""
        ...

    async def carry_out(self, command: Command) -> Outcome:
        """A single command."""
        ...

    async def carry_out_all(self, commands: Sequence[Command]) -> Sequence[Outcome]:
        """Commands of one request; the outcomes are in their order."""
        ...

    async def settled(
        self,
        topics: Collection[str],
        is_settled: Callable[[str, TopicView | None], bool],
        *,
        timeout_s: float,
    ) -> Collection[str]:
        """Wait until topics are as they should be and a broker has acknowledged that.

        Args:
            is_settled: Whether a topic is, by its name and its view, None if it does not exist.

        Returns:
            Those that are. The others were not within the time, or this process ceased to be the
            controller, or too many wait already.
        """
        ...

    async def propagated(self, *, timeout_s: float) -> bool:
        """Wait until a broker has acknowledged all metadata sent so far; False as for topics that
        :meth:`settled` does not return."""
        ...

    def lagging_brokers(self) -> Collection[int]:
        """Brokers that might not know what :meth:`settled` and :meth:`propagated` have confirmed;
        none if this is true of all brokers."""
        ...


class EndpointPort(Protocol):
    """Where brokers and clients ask the controller."""

    def problem(self) -> str | None:
        """Why nobody, or hardly anybody, can connect or is served, or None. May be called from any
        thread."""
        ...

    def refused_peers(self) -> Sequence[Mapping[str, str]]:
        """Who was refused in the last minutes, and why: for ``/status``. May be called from any
        thread."""
        ...

    async def start(self) -> None:
        """Begin to serve.

        Raises:
            ConfigurationError: It is not possible there.
        """
        ...

    async def stop(self) -> None:
        """Answer what is in progress, and end every connection."""
        ...


Serve = Callable[[ControllerRequests, ZooKeeperPort], EndpointPort]
"""Makes the endpoint of a controller. Called in the controller's loop."""

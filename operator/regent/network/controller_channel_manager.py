"""All channels of the controller: one per broker."""

from __future__ import annotations

import asyncio
import functools
import logging
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from typing import Final

from regent.model.cluster import Broker
from regent.model.partition import NO_EPOCH, TopicPartition
from regent.model.topic_config import BrokerFacts
from regent.network.broker_channel import BrokerChannel
from regent.network.channel_metrics import ChannelMetrics
from regent.network.encoding_ahead import EncodingAhead
from regent.network.settings import ChannelSettings
from regent.protocol.api_versions import ProtocolVersion, cluster_protocol_version
from regent.protocol.control_requests import (
    ControlRequests,
    ControlResponse,
    LeaderAndIsrResponse,
    UpdateMetadataResponse,
)
from regent.protocol.error_codes import NONE
from regent.protocol.metadata_updates import SharedMetadata
from regent.protocol.pending_requests import receivers_of

logger = logging.getLogger(__name__)

UNREACHED_S: Final = 15.0
"""So long a broker may be out of reach, a restarted one for instance, before that is news."""


class ControllerChannelManager:
    """Opens and closes channels, and fans batches out to them.

    Implements ``runtime.ports.BrokerChannelsPort``. All methods belong into one event loop.

    Attributes:
        last_batch: See :class:`~regent.runtime.ports.BrokerChannelsPort`.

    Args:
        controller_id: Client id of all connections.
        settings: How channels behave.
        may_send: The right to send now: False while this process is not the controller, or may
            not be it any more.
        on_response: Gets every broker's answers in the order of its requests. Answers of different
            brokers come in any order. An answer for which
            ``error_codes.is_stale_controller_epoch`` holds means: resign.
        on_failure: Gets the broker, the controller epoch and the exception of a channel that a
            defect ended. Its broker gets no more requests, so the controller should resign.
        on_protocol_version: Called with the version and the controller epoch when what
            :meth:`inter_broker_protocol` answered turns out to have changed.
        on_broker_facts: Called with what a broker has answered about itself when that is new.
        wait_to_send: Waits until it is worth asking ``may_send`` again, for so many seconds at
            most.
        on_term: Called with ``epoch_zk_version`` of each :meth:`update`, and with None at the end:
            ``may_send`` has to refuse then.
    """

    def __init__(
        self,
        *,
        controller_id: int,
        settings: ChannelSettings,
        may_send: Callable[[], bool],
        on_response: Callable[[ControlResponse], None],
        on_failure: Callable[[Broker, int, BaseException], None],
        on_protocol_version: Callable[[tuple[int, int], int], None] | None = None,
        on_broker_facts: Callable[[Broker, BrokerFacts], None] | None = None,
        wait_to_send: Callable[[float], Awaitable[None]] = asyncio.sleep,
        on_term: Callable[[int | None], None] | None = None,
    ) -> None:
        self.last_batch = 0
        self._controller_id = controller_id
        self._settings = settings
        self._may_send = may_send
        self._wait_to_send = wait_to_send
        self._on_term = on_term
        self._on_response = on_response
        self._on_failure = on_failure
        self._on_protocol_version = on_protocol_version
        self._controller_epoch = NO_EPOCH
        self._on_broker_facts = on_broker_facts
        self._reported_version: tuple[int, int] | None = None
        self._reported_facts: dict[int, BrokerFacts] = {}
        self._channels: dict[int, BrokerChannel] = {}
        self._standing_by: dict[int, BrokerChannel] = {}
        self._is_active = False
        self._on_standby_settled: Callable[[], None] = lambda: None
        self._closing: set[asyncio.Task[None]] = set()
        self._shared = SharedMetadata()
        self._encoding = asyncio.Lock()
        self._writing: set[EncodingAhead] = set()

    def stand_by(self, brokers: Iterable[Broker]) -> None:
        """Have connections to these brokers, and to no others, through which nothing is sent.

        Each is authenticated, and the broker is asked what it understands, so that a channel that
        is opened later need not do so. While this process is the controller that is what the
        channels do, and this does nothing.
        """
        if self._is_active:
            return
        wanted = {broker.broker_id: broker for broker in brokers}
        for broker_id, channel in list(self._standing_by.items()):
            if channel.broker != wanted.get(broker_id):
                self._end(self._standing_by.pop(broker_id))
        for broker_id, broker in wanted.items():
            known = self._standing_by.get(broker_id)
            if known is None or known.task.done():
                channel = self._standing_by[broker_id] = self._channel(broker, stands_by=True)
                channel.task.add_done_callback(functools.partial(self._standby_ended, channel))

    def listen(self, changed: Callable[[], None]) -> None:
        """See :class:`~regent.runtime.ports.BrokerChannelsPort`."""
        self._on_standby_settled = changed

    @property
    def standing_by(self) -> tuple[int, ...]:
        """Brokers that :meth:`update` would find connected now."""
        return tuple(b for b, channel in self._standing_by.items() if channel.is_connected)

    def _channel(self, broker: Broker, *, stands_by: bool) -> BrokerChannel:
        return BrokerChannel(
            broker,
            client_id=str(self._controller_id),
            settings=self._settings,
            shared=self._shared,
            protocol_version=self.protocol_version,
            listener=self._listener,
            may_send=self._may_send,
            wait_to_send=self._wait_to_send,
            on_response=self._responded,
            on_settled=functools.partial(self._broker_has_settled, broker.broker_id),
            encoding=self._encoding,
            writing=self._writing,
            stands_by=stands_by,
        )

    def update(
        self,
        *,
        opened: Sequence[Broker],
        closed: Sequence[int] = (),
        controller_epoch: int = NO_EPOCH,
        epoch_zk_version: int | None = None,
    ) -> None:
        """Close channels, then open others; the effect ``UpdateChannels``, by which None means that
        nothing may be sent. Here that is up to ``may_send``.

        A broker in both, or one that has a channel already, gets a fresh one: what waits for its
        former life, under a past broker epoch, is dropped. One that :meth:`stand_by` has connected
        to keeps that connection.
        """
        standing_by, self._standing_by = self._standing_by, {}
        self._is_active = True
        self._controller_epoch = controller_epoch
        if self._on_term is not None:
            self._on_term(epoch_zk_version)
        for broker_id in closed:
            self._close(broker_id)
        for broker in opened:
            self._close(broker.broker_id)
            connected = standing_by.get(broker.broker_id)
            if connected is not None and connected.broker == broker and connected.is_connected:
                channel = standing_by.pop(broker.broker_id)
                channel.begin()
            else:
                channel = self._channel(broker, stands_by=False)
            channel.task.add_done_callback(functools.partial(self._ended, broker, controller_epoch))
            self._channels[broker.broker_id] = channel
            if channel.reported is not None:
                self._broker_has_settled(broker.broker_id)
        for left in standing_by.values():
            self._end(left)
        self._report_protocol_version()

    def readdress(self, brokers: Sequence[Broker]) -> None:
        """Have channels to these lives of brokers connect to the endpoints given here from the next
        time on; the effect ``ReaddressChannels``."""
        for broker in brokers:
            channel = self._channels.get(broker.broker_id)
            if channel is not None and channel.broker.epoch == broker.epoch:
                channel.broker = broker

    def send(self, requests: ControlRequests) -> None:
        """Add a batch to what its receivers still have to be informed of.

        Receivers without a channel, or that the batch does not list as brokers, are left out.
        """
        metadata = self._shared.of(requests)
        self.last_batch += 1
        for broker_id in receivers_of(requests):
            channel = self._channels.get(broker_id)
            if channel is None or broker_id not in requests.brokers:
                logger.debug(
                    "requests dropped: no channel to their receiver",
                    extra={"broker_id": broker_id},
                )
                continue
            channel.add(requests, metadata, self.last_batch)

    def protocol_version(self) -> ProtocolVersion:
        """The lowest inter.broker.protocol.version, from what is known now.

        A broker that does not report its version counts with that of the settings, unless some
        broker does not understand it; without that, with what its registration says (version 5: 2.7
        or newer), and beyond that like the others.
        """
        return self._protocol_version_of(self._channels)

    def expected_protocol(self) -> tuple[int, int] | None:
        """:meth:`protocol_version` as (major, minor), if the brokers of :meth:`stand_by` had
        channels; None while one of them has neither answered nor turned out to be out of reach.
        May be called from any thread."""
        channels = dict(self._channels or self._standing_by)
        if not all(channel.settled.is_set() for channel in channels.values()):
            return None
        return self._protocol_version_of(channels)[:2]

    def _protocol_version_of(self, channels: Mapping[int, BrokerChannel]) -> ProtocolVersion:
        known: dict[int, ProtocolVersion] = {}
        unknown: dict[int, int] = {}
        for broker_id, channel in channels.items():
            version = None if channel.reported is None else channel.reported.protocol_version
            if version is None:
                unknown[broker_id] = channel.broker.registration_version
            else:
                known[broker_id] = version
        configured = self._settings.protocol_version
        if (
            configured is not None
            and (unknown or not known)
            and all(channel.understands(configured) for channel in channels.values())
        ):
            return min([configured, *known.values()])
        return cluster_protocol_version(known, unknown=unknown)

    async def inter_broker_protocol(self) -> tuple[int, int]:
        """:meth:`protocol_version` as (major, minor); the effect ``InterBrokerProtocol``.

        Waits for channels that were just opened, at most ``settings.protocol_version_wait``.
        """
        unsettled = [
            asyncio.create_task(channel.settled.wait())
            for channel in self._channels.values()
            if not channel.settled.is_set()
        ]
        if unsettled:
            await asyncio.wait(unsettled, timeout=self._settings.protocol_version_wait)
        for waiting in unsettled:
            waiting.cancel()
        self._reported_version = self.protocol_version()[:2]
        return self._reported_version

    def facts(self, brokers: Sequence[Broker]) -> Sequence[BrokerFacts]:
        """What these lives of brokers have said about themselves by now; the effect
        ``ReportedFacts``."""
        channels = (self._channels.get(broker.broker_id) for broker in brokers)
        asked = {broker.broker_id: broker.epoch for broker in brokers}
        facts = (
            channel.facts(protocol_version=self._settings.protocol_version)
            for channel in channels
            if channel is not None and channel.broker.epoch == asked[channel.broker.broker_id]
        )
        return [each for each in facts if each is not None]

    def close_all(self) -> None:
        """Close every channel and drop what waits; no response is delivered from now on."""
        self._reported_version = None
        self._is_active = False
        if self._on_term is not None:
            self._on_term(None)
        for broker_id in list(self._channels):
            self._close(broker_id)
        while self._standing_by:
            self._end(self._standing_by.popitem()[1])

    async def wait_closed(self) -> None:
        """Wait until the connections of closed channels are gone, before a loop is stopped."""
        if self._closing:
            await asyncio.wait(self._closing)

    def metrics(self) -> Mapping[int, ChannelMetrics]:
        """Counters by broker."""
        return {broker_id: channel.metrics() for broker_id, channel in self._channels.items()}

    def queue_sizes(self) -> Mapping[int, int]:
        """What waits or is in flight, by broker: see :class:`ChannelMetrics`."""
        return {broker_id: channel.queue_size for broker_id, channel in self._channels.items()}

    def problems(self) -> Mapping[int, str]:
        """Why brokers are not reached, of those that are not. May be called from any thread."""
        return {
            broker_id: str(problem)
            for broker_id, channel in list(self._channels.items())
            if (problem := channel.problem) is not None
        }

    def silent(self) -> Sequence[int]:
        """Brokers that do not answer; the effect ``SilentBrokers``."""
        return [b for b, channel in self._channels.items() if not channel.is_answering]

    def unanswered(self) -> Mapping[int, int]:
        """See :class:`~regent.runtime.ports.BrokerChannelsPort`."""
        return {
            broker_id: oldest
            for broker_id, channel in self._channels.items()
            if (oldest := channel.pending.oldest_unanswered) is not None
        }

    def acknowledged(self) -> Mapping[int, int]:
        """See :class:`~regent.runtime.ports.BrokerChannelsPort`."""
        oldest = {b: channel.pending.metadata.oldest for b, channel in self._channels.items()}
        return {b: self.last_batch if n is None else n - 1 for b, n in oldest.items()}

    def answers_read(self, *, unread: Callable[[], Collection[int]]) -> None:
        """See :class:`~regent.runtime.ports.BrokerChannelsPort`."""
        answered = {b: c for b, c in self._channels.items() if c.pending.answers.has_unread}
        left = unread() if answered else ()
        for broker_id, channel in answered.items():
            if broker_id not in left:
                channel.pending.answers.read()

    def _responded(self, response: ControlResponse) -> None:
        channel = self._channels.get(response.broker_id)
        if channel is not None and isinstance(response, LeaderAndIsrResponse):
            channel.pending.answers.answered()
        if channel is not None and isinstance(response, UpdateMetadataResponse):
            channel.pending.metadata.answered(is_accepted=response.error_code == NONE)
        self._on_response(response)

    def uninformed(self) -> Mapping[int, frozenset[TopicPartition]]:
        """See :class:`~regent.runtime.ports.ConnectionsPort`."""
        before = asyncio.get_running_loop().time() - UNREACHED_S
        return {
            broker_id: channel.uninformed
            for broker_id, channel in self._channels.items()
            if channel.unreached_since is not None and channel.unreached_since <= before
        }

    def _listener(self) -> str | None:
        """Name of the listener of controllers, as far as it is known yet."""
        if self._settings.listener is not None:
            return self._settings.listener
        reported = (c.reported for c in self._channels.values() if c.reported is not None)
        return next((each.listener for each in reported if each.listener is not None), None)

    def _broker_has_settled(self, broker_id: int) -> None:
        if not self._is_active:
            self._on_standby_settled()
        self._report_protocol_version()
        channel = self._channels.get(broker_id)
        if channel is None or self._on_broker_facts is None:
            return
        facts = channel.facts(protocol_version=self._settings.protocol_version)
        if facts is not None and facts != self._reported_facts.get(broker_id):
            self._reported_facts[broker_id] = facts
            self._on_broker_facts(channel.broker, facts)

    def _report_protocol_version(self) -> None:
        """Report a change, once it rests on all brokers: a guess may be taken back soon."""
        if self._reported_version is None or self._on_protocol_version is None:
            return
        if not self._channels or any(each.reported is None for each in self._channels.values()):
            return
        version = self.protocol_version()[:2]
        if version != self._reported_version:
            self._reported_version = version
            self._on_protocol_version(version, self._controller_epoch)

    def _close(self, broker_id: int) -> None:
        channel = self._channels.pop(broker_id, None)
        self._reported_facts.pop(broker_id, None)
        if channel is not None:
            self._end(channel)

    def _end(self, channel: BrokerChannel) -> None:
        self._closing.add(channel.task)
        channel.task.add_done_callback(self._closing.discard)
        channel.close()

    def _standby_ended(self, channel: BrokerChannel, task: asyncio.Task[None]) -> None:
        """A defect costs no more than the connection, which the next take-over opens."""
        error = None if task.cancelled() else task.exception()
        if error is not None and self._standing_by.get(channel.broker.broker_id) is channel:
            logger.error(
                "connection of a standby ended by a defect",
                extra={"broker_id": channel.broker.broker_id},
                exc_info=error,
            )
            self._on_standby_settled()

    def _ended(self, broker: Broker, controller_epoch: int, task: asyncio.Task[None]) -> None:
        if task.cancelled():
            return
        error = task.exception()
        if error is not None:
            logger.error(
                "channel ended by a defect",
                extra={"broker_id": broker.broker_id},
                exc_info=error,
            )
            self._on_failure(broker, controller_epoch, error)

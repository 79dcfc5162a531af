"""The channel to one broker: what it still has to be informed of, and one request in flight.

The rules are those of Kafka's ``RequestSendThread``: a request is repeated until the broker has
answered it, and a channel ends only when its broker is removed. Repeating is harmless, since
brokers ignore what is not newer than what they know. What differs: what waits is merged
(:mod:`regent.protocol.pending_requests`), a channel connects at once and asks what the broker
understands (Kafka trusts the protocol version it is configured with), nothing is sent while that
is not allowed, and pauses grow to a bound.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Final, TypeVar

import msgspec

from regent.model.cluster import Broker, EndPoint
from regent.model.errors import ConfigurationError
from regent.model.partition import TopicPartition
from regent.model.topic_config import BrokerFacts
from regent.network.api_versions import ask_versions
from regent.network.broker_settings import SettingsQuestion, broker_facts
from regent.network.channel_metrics import ChannelMetrics
from regent.network.connection import BrokerConnection, SendingStoppedError
from regent.network.connection_problem import (
    ConnectionProblem,
    connection_problem,
    endpoint_text,
)
from regent.network.encoding_ahead import EncodingAhead
from regent.network.first_of import first_of
from regent.network.settings import ChannelSettings, response_timeout
from regent.protocol import update_metadata
from regent.protocol.api_versions import (
    ProtocolVersion,
    UnsupportedBrokerError,
    VersionRange,
    choose_version,
    understands,
)
from regent.protocol.connection_setup import AuthenticationError, BrokerSettings
from regent.protocol.control_codec import (
    Body,
    api_key_of,
    decode_response_body,
    encode_ahead,
    encode_body,
    is_flexible,
    is_slow_to_encode,
)
from regent.protocol.control_requests import ControlRequest, ControlRequests, ControlResponse
from regent.protocol.metadata_updates import Metadata, SharedMetadata
from regent.protocol.pending_requests import PendingRequests, leadership_in
from regent.protocol.primitives import DecodeError
from regent.sockets.kept_errors import clear_frames

logger = logging.getLogger(__name__)

T = TypeVar("T")

_WARNING_INTERVAL: Final = 30.0
"""Seconds between two warnings about a broker that stays out of reach."""

CHECK_INTERVAL: Final = 10.0
"""Seconds between two questions to a broker that nothing is sent to yet. Brokers close connections
that are idle for ten minutes, firewalls forget them sooner."""

REFUSED_INTERVAL: Final = 60.0
"""Seconds after which a broker is asked again that understands no version of what it is to be told:
somebody may have put that right."""

_FAILURES: Final = (
    OSError,
    TimeoutError,
    DecodeError,
    AuthenticationError,
    ConfigurationError,
    UnsupportedBrokerError,
)


class BrokerChannel:
    """Sends one broker what it has to be informed of, each request until it is answered.

    Args:
        broker: The receiver. Another life of it (another epoch) gets another channel.
            Kept as an attribute, by which it is connected to: this life may change its endpoints.
        client_id: How brokers see the controller in their logs and quotas.
        settings: Timeouts and security.
        shared: Merges what waits for several channels.
        protocol_version: The version at which requests are sent, asked for each.
        listener: Name of the listener of controllers, as far as it is known; asked likewise.
        may_send: Asked right before each sending, and again before the last bytes of a large
            request leave. While it says no, nothing is sent and nothing is lost.
        wait_to_send: Waits until it is worth asking again, for so many seconds at most.
        on_response: Gets each response, once, in the order of the requests. Must not block.
        on_settled: Called when the broker has reported its settings, and when it was not reached
            the first time.
        encoding: Held while a large request is encoded; the same for all channels.
        writing: See :class:`EncodingAhead`; likewise.
        stands_by: Whether to connect again whenever the connection is lost, until :meth:`begin`.
            After that it is opened when there is something to send.

    Attributes:
        reported: What the broker has said about itself.
        settled: Set once it has, or was not reached, or the channel has ended.
        pending: What waits, and what is not answered.
        problem: Why the broker is not reached, while it is not.
        unreached_since: Since when, as loop time.
    """

    def __init__(
        self,
        broker: Broker,
        *,
        client_id: str,
        settings: ChannelSettings,
        shared: SharedMetadata,
        protocol_version: Callable[[], ProtocolVersion],
        listener: Callable[[], str | None],
        may_send: Callable[[], bool],
        wait_to_send: Callable[[float], Awaitable[None]],
        on_response: Callable[[ControlResponse], None],
        on_settled: Callable[[], None],
        encoding: asyncio.Lock,
        writing: set[EncodingAhead],
        stands_by: bool = False,
    ) -> None:
        self.broker = broker
        self.reported: BrokerSettings | None = None
        self.settled = asyncio.Event()
        self.problem: ConnectionProblem | None = None
        self.unreached_since: float | None = None
        self._client_id = client_id
        self._settings = settings
        self._protocol_version = protocol_version
        self._listener = listener
        self._may_send = may_send
        self._wait_to_send = wait_to_send
        self._on_response = on_response
        self._on_settled = on_settled
        self._encoding = encoding
        self._ahead = EncodingAhead(writing=writing)
        self._supported: Mapping[int, VersionRange] = {}
        self.pending = PendingRequests(broker.broker_id, shared=shared)
        self._something_waits = asyncio.Event()
        self._in_flight: ControlRequest | None = None
        self._uninformed: frozenset[TopicPartition] | None = None
        self._connection: BrokerConnection | None = None
        self._endpoint: EndPoint | None = None
        self._metrics = ChannelMetrics()
        self._failures_in_a_row = 0
        self._last_warning = 0.0
        self._unsupported: set[int] = set()
        self._stands_by = stands_by
        self._is_asking = False
        self._closed = False
        self._loop = asyncio.get_running_loop()
        self._question = SettingsQuestion(broker.broker_id, now=self._loop.time)
        self._task = self._loop.create_task(self._run(), name=f"channel-{broker.broker_id}")

    @property
    def task(self) -> asyncio.Task[None]:
        """Ends when the channel is closed, and with an exception only for a defect."""
        return self._task

    def understands(self, protocol: ProtocolVersion) -> bool:
        """Whether the broker may run this protocol version, as far as is known yet."""
        return understands(protocol, supported=self._supported)

    def facts(self, *, protocol_version: ProtocolVersion | None) -> BrokerFacts | None:
        """What decides which topic configurations the broker can load; None before it has answered.

        Args:
            protocol_version: Counts where the broker did not say its own.
        """
        if self.reported is None:
            return None
        return broker_facts(
            self.broker.broker_id, self.reported, self._supported, protocol_version=protocol_version
        )

    @property
    def queue_size(self) -> int:
        """What waits or is in flight: see :class:`ChannelMetrics`."""
        return self.pending.size + (self._in_flight is not None)

    @property
    def uninformed(self) -> frozenset[TopicPartition]:
        """Partitions of whose leadership the broker still has to be informed. The same object as
        long as nothing changes, as there may be 100,000."""
        if self._uninformed is None:
            waiting = frozenset(self.pending.leadership)
            self._uninformed = waiting.union(leadership_in(self._in_flight))
        return self._uninformed

    @property
    def is_answering(self) -> bool:
        """Whether the broker has answered a request, and none has failed since."""
        return self._metrics.answered > 0 and self.unreached_since is None

    @property
    def is_connected(self) -> bool:
        """Whether the broker has accepted us and said what it understands, and the connection is
        open as far as is known."""
        connection = self._connection
        is_open = connection is not None and not connection.is_lost
        return is_open and self.reported is not None and not self._is_asking

    def begin(self) -> None:
        """The standby has become the controller: requests will follow."""
        self._stands_by = False
        self._something_waits.set()

    def add(self, requests: ControlRequests, metadata: Metadata, number: int) -> None:
        """Add what a batch has for the broker; see :meth:`PendingRequests.add`."""
        self.pending.add(requests, metadata, number)
        if self.broker.broker_id in (requests.leader_and_isr.keys() | requests.stop_replica.keys()):
            self._uninformed = None
        self._something_waits.set()

    def close(self) -> None:
        """Drop what waits and end. No response is delivered from now on."""
        self._closed = True
        self._task.cancel()

    def metrics(self) -> ChannelMetrics:
        """The counters as they are now."""
        return msgspec.structs.replace(self._metrics, queued=self.queue_size)

    async def _run(self) -> None:
        try:
            # Connecting does not wait for a request: the versions are to be known before one.
            await self._until_it_works(self._connect)
            while not self._closed:
                await self._until_something_waits()
                # Until there is a connection, what waits goes on to be merged.
                await self._until_it_works(self._connect)
                await self._exchange(self.pending.take())
        except asyncio.CancelledError:
            # A task that keeps it is in a circle with this channel, and so with all that waits:
            # nobody would free that, as the collector hardly ever looks at what terms leave.
            if not self._closed:
                raise
        finally:
            self._disconnect()
            self.settled.set()

    async def _until_something_waits(self) -> None:
        while not self.pending:
            self._something_waits.clear()
            if self._stands_by:
                await self._stand_by()
            else:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout_at(self._question.due_at):
                        await self._something_waits.wait()
                if not self.pending:
                    await self._until_it_works(self._keep_settings)

    async def _stand_by(self) -> None:
        """Stay connected until something waits, the connection is lost, or the broker was asked."""
        connection = await self._until_it_works(self._connect)
        await first_of(
            self._something_waits.wait(), connection.wait_lost(), asyncio.sleep(CHECK_INTERVAL)
        )
        if self._stands_by and not connection.is_lost:
            await self._until_it_works(self._ask_again)

    async def _ask_again(self) -> None:
        """Have the broker answer: a connection may end without a word, and a take-over must not be
        the first to notice. Meanwhile it does not count as connected."""
        connection = await self._connect()
        self._is_asking = True
        try:
            async with asyncio.timeout(self._settings.connect_timeout):
                self._supported = await ask_versions(connection)
            await self._keep_settings()
        finally:
            self._is_asking = False

    async def _keep_settings(self) -> None:
        """Ask the broker for its settings again if it is time to. What it does not tell any more
        is as it was; one that has never told them may have another listener for controllers."""
        if not self._question.is_due():
            return
        if self.reported is not None and self.reported.topics is None:
            self._disconnect()
        connection = await self._connect()
        if not self._question.is_due():
            return  # the connection is a new one
        async with asyncio.timeout(self._settings.response_timeout):
            reported = await self._question.ask(connection)
        if isinstance(reported, BrokerSettings) and reported != self.reported:
            self.reported = reported
            self._settle()

    async def _exchange(self, request: ControlRequest) -> None:
        """Send a request until it is answered."""
        self._in_flight = request
        version = await self._until_it_works(functools.partial(self._version_of, request))
        if version is None:
            self._in_flight = None
            return
        body = await self._encoded(request, version)
        send = functools.partial(self._send, request, version, body)
        try:
            response = await self._until_it_works(send)
        finally:
            self._ahead.cancel()
        self._in_flight = self._uninformed = None
        self._metrics.answered += 1
        self._on_response(response)

    async def _version_of(self, request: ControlRequest) -> int | None:
        """The version at which to send a request; None: leave it out. Not so leadership: a broker
        that cannot be told of that is as out of reach as one that does not answer."""
        await self._connect()
        api_key, protocol = api_key_of(request), self._protocol_version()
        try:
            return choose_version(api_key, protocol=protocol, supported=self._supported)
        except UnsupportedBrokerError as error:
            if leadership_in(request):
                raise
            if api_key not in self._unsupported:
                self._unsupported.add(api_key)
                self._log(logging.ERROR, "request left out: no common version", error=str(error))
            return None

    async def _encoded(self, request: ControlRequest, version: int) -> Body:
        """What takes long is encoded beside the loop, one after the other: several at once would
        all be late."""
        encode = functools.partial(encode_body, request, version=version, listener=self._listener())
        if not is_slow_to_encode(request, version):
            return encode()
        async with self._encoding:
            try:
                return await asyncio.to_thread(encode)
            except RuntimeError:  # no thread can be started
                return encode()

    def _encode_next_update(self) -> None:
        updates = self.pending.next_update
        if updates is None:
            return
        with contextlib.suppress(UnsupportedBrokerError):  # reported when its turn has come
            protocol, key = self._protocol_version(), update_metadata.API_KEY
            version = choose_version(key, protocol=protocol, supported=self._supported)
            encode_ahead(updates, version)

    async def _send(self, request: ControlRequest, version: int, body: Body) -> ControlResponse:
        timeout = response_timeout(request, self._settings.response_timeout)
        while True:
            connection = await self._connect()
            if not self._may_send():
                await self._wait_to_send(self._settings.retry_delay)
                continue
            self._metrics.sent += 1
            self._ahead.on_sending()
            try:
                async with asyncio.timeout(timeout):
                    answer = await connection.round_trip(
                        api_key_of(request),
                        version,
                        body,
                        flexible=is_flexible(request, version),
                        may_go_on=self._may_send,
                        on_sent=functools.partial(self._ahead.on_sent, self._encode_next_update),
                    )
            except SendingStoppedError:  # no fault of the broker, which may have got a part
                self._disconnect()
            else:
                return decode_response_body(request, answer, version=version)
            finally:
                self._ahead.on_ended()

    async def _until_it_works(self, attempt: Callable[[], Awaitable[T]]) -> T:
        while True:
            try:
                result = await attempt()
            except _FAILURES as error:
                self._disconnect()
                self._metrics.failures += 1
                self._failures_in_a_row += 1
                self.unreached_since = self.unreached_since or self._loop.time()
                self.problem = connection_problem(
                    error, endpoint=self._endpoint, settings=self._settings
                )
                self._warn(self.problem)
                if not self.settled.is_set():
                    self._settle()
                # The connection keeps it, and with the frames that it came through keeps this.
                clear_frames(error)
                is_refused = isinstance(error, UnsupportedBrokerError)
                pause_s = self._settings.pause_after(self._failures_in_a_row)
                await asyncio.sleep(REFUSED_INTERVAL if is_refused else pause_s)
            else:
                self._failures_in_a_row = 0
                self.problem = self.unreached_since = None
                return result

    async def _connect(self) -> BrokerConnection:
        """The open connection; a new one if there is none, or the broker closed it."""
        if self._connection is not None and not self._connection.is_lost:
            return self._connection
        connection = await self._open(self._choose_endpoint())
        meant = self._told_endpoint()
        if meant is not None and meant != connection.endpoint:
            connection = await self._open(meant)
        endpoint = endpoint_text(connection.endpoint)
        if self._settings.listener is not None and self._settings.chosen(self.broker) is None:
            said = "broker lacks the listener inter_broker_listener; another one is used"
            self._log(logging.WARNING, said, endpoint=endpoint)
        version = None if self.reported is None else self.reported.protocol_version
        self._log(
            logging.INFO,
            "connected to broker",
            endpoint=endpoint,
            protocol_version=None if version is None else str(version),
        )
        self._settle()
        return connection

    def _settle(self) -> None:
        self.settled.set()
        self._on_settled()

    def _choose_endpoint(self) -> EndPoint:
        meant = self._told_endpoint()
        if meant is not None:
            return meant
        candidates = self._settings.candidates(self.broker)
        if not candidates:
            raise ConfigurationError(
                f"broker {self.broker.broker_id} has no listener that these settings can use; "
                "set the listener's name, and TLS and SASL as it needs them"
            )
        return candidates[self._failures_in_a_row % len(candidates)]

    def _told_endpoint(self) -> EndPoint | None:
        """The endpoint that the broker's own controller would use, if it can be used.

        Then no other is tried, even if this one fails: behind another listener the controller may
        be another principal, whose requests are answered with an authorization error.
        """
        listener = None if self.reported is None else self.reported.listener
        if listener is None or self._settings.chosen(self.broker) is not None:
            return None
        endpoint = self.broker.endpoint(listener)
        return endpoint if endpoint is not None and self._settings.can_use(endpoint) else None

    async def _open(self, endpoint: EndPoint) -> BrokerConnection:
        """Replace the connection, and ask the broker what it understands and how it is set up."""
        self._disconnect()
        self._endpoint = endpoint
        self._connection = connection = await BrokerConnection.open(
            endpoint, client_id=self._client_id, settings=self._settings
        )
        async with asyncio.timeout(self._settings.response_timeout):
            supported = await ask_versions(connection)
            reported = await self._question.ask(connection)
        if isinstance(reported, str):
            # Nor whether it is the one that is meant: see broker_identity.
            is_news = self.reported is None or self.reported.topics is not None
            self._log(
                logging.WARNING if is_news else logging.DEBUG,
                "broker does not report its protocol version",
                error=reported,
                identity="not known: another broker may answer at its address",
            )
            reported = BrokerSettings(None, None)
        self._supported, self.reported = supported, reported
        return connection

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _warn(self, problem: ConnectionProblem) -> None:
        """Log a failure; of a series only the first, and then one every half minute."""
        now = self._loop.time()
        if self._failures_in_a_row > 1 and now - self._last_warning < _WARNING_INTERVAL:
            return
        self._last_warning = now
        self._log(
            logging.WARNING,
            "broker not reached; retrying",
            **{name: value for name, value in problem._asdict().items() if value is not None},
            failures=self._failures_in_a_row,
        )

    def _log(self, level: int, message: str, **extra: object) -> None:
        logger.log(level, message, extra={"broker_id": self.broker.broker_id, **extra})

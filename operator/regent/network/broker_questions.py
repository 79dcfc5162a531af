"""Questions to brokers that a client asks, beside the controller's channels.

Each broker has one connection, opened with the first question and kept for the next one. Questions
to one broker wait for each other; those to others do not.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Collection, Mapping
from typing import Final, TypeVar

import msgspec

from regent.model.cluster import Broker, EndPoint
from regent.model.errors import BrokerQuestionError
from regent.model.partition import TopicPartition
from regent.model.replica_sizes import ReplicaSizes
from regent.network.connection import BrokerConnection
from regent.network.connection_problem import connection_problem
from regent.network.settings import ChannelSettings
from regent.protocol import describe_log_dirs
from regent.protocol.api_versions import VersionRange
from regent.protocol.connection_setup import (
    AuthenticationError,
    api_versions_request,
    decode_api_versions_response,
)
from regent.protocol.primitives import DecodeError
from regent.protocol.replica_sizes import (
    decode_replica_sizes_response,
    encode_replica_sizes_request,
)
from regent.protocol.topic_usage import (
    DESCRIBE_GROUPS,
    LIST_GROUPS,
    LIST_OFFSETS,
    OFFSET_FETCH,
    Api,
    UsageUnknownError,
    decode_has_offsets,
    decode_list_groups,
    decode_list_offsets,
    decode_subscribed_groups,
    encode_describe_groups,
    encode_list_offsets,
    encode_offset_fetch,
)

_CONNECT_S: Final = 5.0
"""To open a connection, with TLS and SASL."""

_ANSWER_S: Final = 10.0
"""For an answer, in seconds."""

_DESCRIBED_TOGETHER: Final = 100
"""Groups in one DescribeGroups."""

T = TypeVar("T")

_FAILURES: Final = (OSError, DecodeError, AuthenticationError)
"""What goes wrong with a connection; TimeoutError is an OSError."""


class BrokerQuestions:
    """Implements :class:`~regent.runtime.ports.BrokerQuestionsPort`.

    Args:
        client_id: How brokers see these requests in their logs and quotas.
        settings: Listener and security; their times do not count here.
    """

    def __init__(self, *, client_id: str, settings: ChannelSettings) -> None:
        self._client_id = client_id
        self._settings = msgspec.structs.replace(settings, connect_timeout=_CONNECT_S)
        self._lines: dict[int, _Line] = {}

    async def replica_sizes(
        self, broker: Broker, partitions: Collection[TopicPartition]
    ) -> ReplicaSizes:
        """How many bytes a broker has of partitions.

        Raises:
            BrokerQuestionError: If it does not say.
        """
        line = self._line(broker)
        answer = await line.ask(
            describe_log_dirs.API_KEY,
            describe_log_dirs.VERSIONS,
            encode_replica_sizes_request(partitions),
        )
        try:
            sizes = decode_replica_sizes_response(answer)
        except DecodeError as error:
            line.close()
            raise BrokerQuestionError(
                f"it answers DescribeLogDirs with nonsense: {error}"
            ) from error
        if sizes is None:
            raise BrokerQuestionError(
                "Regent may not describe the cluster; allow its user Describe on the cluster "
                "(kafka-acls --add --cluster --operation Describe)"
            )
        return sizes

    async def records_since(
        self, broker: Broker, topic: str, partitions: Collection[int], *, since_ms: int
    ) -> frozenset[int]:
        """Which of the partitions that a broker leads have records at or after a time.

        Raises:
            BrokerQuestionError: If it does not say.
        """
        body = encode_list_offsets(topic, partitions, since_ms=since_ms)
        return await self._answer(
            broker,
            LIST_OFFSETS,
            body,
            functools.partial(decode_list_offsets, topic, partitions),
        )

    async def groups_using(
        self, broker: Broker, topic: str, partitions: Collection[int]
    ) -> dict[str, str]:
        """The consumer groups that a broker coordinates and that use a topic, each with how.

        Raises:
            BrokerQuestionError: If it does not say, or may not say everything.
        """
        # Who may not describe the cluster is not told all groups, and not that either: ask first.
        await self.replica_sizes(broker, ())
        groups = list(await self._answer(broker, LIST_GROUPS, b"", decode_list_groups))
        using: dict[str, str] = {}
        for start in range(0, len(groups), _DESCRIBED_TOGETHER):
            some = groups[start : start + _DESCRIBED_TOGETHER]
            decode_groups = functools.partial(decode_subscribed_groups, topic)
            body = encode_describe_groups(some)
            subscribed = await self._answer(broker, DESCRIBE_GROUPS, body, decode_groups)
            using.update(dict.fromkeys(sorted(subscribed), "subscribed"))
        for group in groups:
            body = encode_offset_fetch(group, topic, partitions)
            decode_offsets = functools.partial(decode_has_offsets, group, topic, partitions)
            if await self._answer(broker, OFFSET_FETCH, body, decode_offsets):
                using.setdefault(group, "committed offsets")
        return using

    async def _answer(
        self, broker: Broker, api: Api, body: bytes, decode: Callable[[bytes], T]
    ) -> T:
        line = self._line(broker)
        versions = range(api.version, api.version + 1)
        answer = await line.ask(api.key, versions, body)
        try:
            return decode(answer)
        except DecodeError as error:
            line.close()
            raise BrokerQuestionError(f"it answers {api.name} with nonsense: {error}") from error
        except UsageUnknownError as error:
            raise BrokerQuestionError(str(error)) from error

    def close(self) -> None:
        """Close all connections; questions in progress fail."""
        while self._lines:
            self._lines.popitem()[1].close()

    def _line(self, broker: Broker) -> _Line:
        line = self._lines.get(broker.broker_id)
        if line is None or line.broker != broker:
            if line is not None:
                line.close()  # to a former life of the broker
            line = _Line(broker, client_id=self._client_id, settings=self._settings)
            self._lines[broker.broker_id] = line
        return line


class _Line:
    """The connection to one broker."""

    def __init__(self, broker: Broker, *, client_id: str, settings: ChannelSettings) -> None:
        self.broker = broker
        self._client_id = client_id
        self._settings = settings
        self._turn = asyncio.Lock()
        self._connection: BrokerConnection | None = None
        self._supported: Mapping[int, VersionRange] = {}
        self._failures = 0

    async def ask(self, api_key: int, versions: range, body: bytes) -> bytes:
        """Send a request of the legacy encoding; the body of its answer.

        Args:
            versions: Those that the body may be sent as; the newest one that the broker understands
                is.

        Raises:
            BrokerQuestionError: If there is no answer.
        """
        async with self._turn:
            endpoint = self._endpoint()
            try:
                connection = await self._connect(endpoint)
                async with asyncio.timeout(_ANSWER_S):
                    answer = await connection.round_trip(
                        api_key, self._version(api_key, versions), (body,), flexible=False
                    )
            except _FAILURES as error:
                self._failures += 1
                self.close()
                problem = connection_problem(error, endpoint=endpoint, settings=self._settings)
                raise BrokerQuestionError(str(problem)) from error
            except BaseException:
                self.close()  # an answer may still come
                raise
        return answer

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _endpoint(self) -> EndPoint:
        """Where to ask: another listener after each failure, if there are several."""
        candidates = self._settings.candidates(self.broker)
        if not candidates:
            raise BrokerQuestionError("it has no listener that Regent's settings can use")
        return candidates[self._failures % len(candidates)]

    async def _connect(self, endpoint: EndPoint) -> BrokerConnection:
        if self._connection is not None and not self._connection.is_lost:
            return self._connection
        self.close()
        self._connection = connection = await BrokerConnection.open(
            endpoint, client_id=self._client_id, settings=self._settings
        )
        async with asyncio.timeout(_ANSWER_S):
            # Every broker understands this version.
            answer = await connection.set_up(api_versions_request("", version=0))
        self._supported = decode_api_versions_response(0, answer)
        return connection

    def _version(self, api_key: int, versions: range) -> int:
        known = self._supported.get(api_key)
        common = [v for v in versions if known is not None and known.lowest <= v <= known.highest]
        if not common:
            raise BrokerQuestionError(
                f"it does not understand versions {versions[0]} to {versions[-1]} of API {api_key}"
            )
        return common[-1]

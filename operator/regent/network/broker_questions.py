"""Questions to brokers that a client asks, beside the controller's channels.

Each broker has one connection, opened with the first question and kept for the next one. Questions
to one broker wait for each other; those to others do not.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection
from typing import Final, TypeVar

from regent.model.cluster import Broker
from regent.model.errors import BrokerQuestionError
from regent.model.partition import TopicPartition
from regent.model.replica_sizes import ReplicaSizes
from regent.network.broker_line import BrokerLine
from regent.network.settings import ChannelSettings
from regent.protocol import describe_log_dirs
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

_DESCRIBED_TOGETHER: Final = 100
"""Groups in one DescribeGroups."""

T = TypeVar("T")


class BrokerQuestions:
    """Implements :class:`~regent.runtime.ports.BrokerQuestionsPort`.

    Args:
        client_id: How brokers see these requests in their logs and quotas.
        settings: Listener and security; their times do not count here.
    """

    def __init__(self, *, client_id: str, settings: ChannelSettings) -> None:
        self._client_id = client_id
        self._settings = settings
        self._lines: dict[int, BrokerLine] = {}

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
        # Who may not describe the cluster gets some groups, and no error: ask first.
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

    def _line(self, broker: Broker) -> BrokerLine:
        line = self._lines.get(broker.broker_id)
        if line is None or line.broker != broker:
            if line is not None:
                line.close()  # to a former life of the broker
            line = BrokerLine(broker, client_id=self._client_id, settings=self._settings)
            self._lines[broker.broker_id] = line
        return line

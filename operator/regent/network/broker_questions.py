"""Questions to brokers that a client asks, beside the controller's channels.

Each broker has one connection, opened with the first question and kept for the next one. Questions
to one broker wait for each other; those to others do not.
"""

from __future__ import annotations

from collections.abc import Collection

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

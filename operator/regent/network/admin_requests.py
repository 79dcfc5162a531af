"""Requests to the broker that is the controller, as Kafka's admin client makes them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final

from regent.model.cluster import Broker
from regent.model.errors import BrokerNotControllerError, BrokerQuestionError, BrokerRefusedError
from regent.model.partition import FoundPartition, TopicPartition
from regent.network.broker_line import BrokerLine
from regent.network.settings import ChannelSettings
from regent.protocol import admin_requests
from regent.protocol.error_codes import (
    CLUSTER_AUTHORIZATION_FAILED,
    NONE,
    NOT_CONTROLLER,
    error_name,
)
from regent.protocol.primitives import DecodeError
from regent.protocol.served_apis import ALTER_PARTITION_REASSIGNMENTS, ELECT_LEADERS, Api

_TIMEOUT_MS: Final = 30_000
"""How long the controller may take, by the request. An election it answers once it is over."""

_ANSWER_S: Final = 40.0
"""For the answer, in seconds."""

Answers = Mapping[TopicPartition, tuple[int, str]]


class AdminRequests:
    """Implements :class:`~regent.runtime.admin_port.AdminRequestsPort`, in one event loop.

    Args:
        client_id: How the broker sees these requests in its logs and quotas.
        settings: Listener and security; their times do not count here.
    """

    def __init__(self, *, client_id: str, settings: ChannelSettings) -> None:
        self._client_id = client_id
        self._settings = settings
        self._lines: dict[int, BrokerLine] = {}

    async def alter_partition_reassignments(
        self,
        broker: Broker,
        targets: Mapping[TopicPartition, tuple[int, ...] | None],
        found: Mapping[TopicPartition, FoundPartition],
    ) -> Answers:
        """See :class:`~regent.runtime.admin_port.AdminRequestsPort`."""
        return await self._ask(
            broker,
            ALTER_PARTITION_REASSIGNMENTS,
            range(ALTER_PARTITION_REASSIGNMENTS.highest + 1),
            partial(
                admin_requests.encode_reassignments,
                targets=targets,
                found=found,
                timeout_ms=_TIMEOUT_MS,
            ),
            admin_requests.decode_reassignments,
        )

    async def elect_leaders(
        self, broker: Broker, election_type: int, partitions: Sequence[TopicPartition] | None
    ) -> Answers:
        """See :class:`~regent.runtime.admin_port.AdminRequestsPort`."""
        return await self._ask(
            broker,
            ELECT_LEADERS,
            admin_requests.election_versions(election_type),
            partial(
                admin_requests.encode_elections,
                election_type=election_type,
                partitions=partitions,
                timeout_ms=_TIMEOUT_MS,
            ),
            admin_requests.decode_elections,
        )

    def close(self) -> None:
        """Close the connections. Requests under way fail."""
        for line in self._lines.values():
            line.close()

    async def _ask(
        self,
        broker: Broker,
        api: Api,
        versions: range,
        encode: Callable[[int], bytes],
        decode: Callable[[int, bytes], tuple[int, str, Answers]],
    ) -> Answers:
        line = self._line_to(broker, api)
        version, body = await line.exchange(
            api.key,
            versions,
            encode,
            is_flexible=partial(admin_requests.is_flexible, api),
            answer_s=_ANSWER_S,
        )
        try:
            code, message, answers = decode(version, body)
        except DecodeError as error:
            line.close()
            raise BrokerQuestionError(f"it answers {api.name} with nonsense: {error}") from error
        if NOT_CONTROLLER in (code, *(result for result, _ in answers.values())):
            raise BrokerNotControllerError(f"it answers {api.name} with NOT_CONTROLLER")
        if code == CLUSTER_AUTHORIZATION_FAILED:
            raise BrokerRefusedError(
                "Regent may not alter the cluster; allow its user Alter on the cluster "
                "(kafka-acls --add --cluster --operation Alter)"
            )
        if code != NONE:
            raise BrokerQuestionError(f"it answers {api.name} with {error_name(code)} {message}")
        return answers

    def _line_to(self, broker: Broker, api: Api) -> BrokerLine:
        """The connection to the controller for one kind of requests: others do not wait for them.
        Those to a former controller, or to its former life, end."""
        if any(line.broker != broker for line in self._lines.values()):
            self.close()
            self._lines.clear()
        line = self._lines.get(api.key)
        if line is None:
            line = BrokerLine(broker, client_id=self._client_id, settings=self._settings)
            self._lines[api.key] = line
        return line

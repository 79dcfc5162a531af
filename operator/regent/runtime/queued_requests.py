"""Requests to the controller as events of its queue, each with its answer."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import Any, Final

from regent.admin.commands import Outcome
from regent.controller import events as e
from regent.controller.broker_requests import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
    AlterPartitionRequest,
    AlterPartitionResponse,
    Asked,
)
from regent.controller.commands import Command
from regent.controller.view import ClusterView, TopicView
from regent.protocol.error_codes import UNKNOWN_SERVER_ERROR
from regent.runtime.topic_waits import TopicWaits

REPEATED_AFTER_S: Final = 1.0
"""How long a leader waits for the answer that ZooKeeper has refused a write. Kafka 3.1 and newer
repeat the request as soon as it is answered, without end (``handleAlterPartitionError``). Meanwhile
the other ISR changes of that broker wait, so it is no longer than that.

No other code would do. Up to Kafka 3.0 leaders keep what they have asked for after any refusal.
Newer ones take it back after OPERATION_NOT_ATTEMPTED, and ask again when a follower fetches.

An AllocateProducerIds that fails is not held: brokers ask again only when a producer comes, and in
some versions a thread that serves requests waits for the answer."""


class QueuedRequests:
    """Implements :class:`~regent.runtime.ports.ControllerRequests`.

    Args:
        put: Appends an event to the queue.
        view: The newest view.
        waits: The requests that wait for topics and for brokers.
        pause: Waits for some seconds.
    """

    def __init__(
        self,
        put: Callable[[e.ControllerEvent], None],
        view: Callable[[], ClusterView],
        waits: TopicWaits,
        *,
        pause: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._put = put
        self._view = view
        self._waits = waits
        self._pause = pause

    @property
    def view(self) -> ClusterView:
        return self._view()

    async def alter_partition(self, request: AlterPartitionRequest) -> AlterPartitionResponse:
        """See :class:`~regent.runtime.ports.ControllerRequests`."""
        answer: AlterPartitionResponse = await self._ask(
            lambda reply_to: e.AlterPartitionReceived((Asked(request, reply_to),))
        )
        if any(result.error_code == UNKNOWN_SERVER_ERROR for result in answer.results):
            await self._pause(REPEATED_AFTER_S)
        return answer

    async def allocate_producer_ids(
        self, request: AllocateProducerIdsRequest
    ) -> AllocateProducerIdsResponse:
        """See :class:`~regent.runtime.ports.ControllerRequests`."""
        answer: AllocateProducerIdsResponse = await self._ask(
            lambda reply_to: e.AllocateProducerIdsReceived((Asked(request, reply_to),))
        )
        return answer

    async def carry_out(self, command: Command) -> Outcome:
        """See :class:`~regent.runtime.ports.ControllerRequests`."""
        return (await self.carry_out_all((command,)))[0]

    async def carry_out_all(self, commands: Sequence[Command]) -> Sequence[Outcome]:
        """See :class:`~regent.runtime.ports.ControllerRequests`."""
        if not commands:
            return ()
        outcomes: tuple[Outcome, ...] = await self._ask(
            lambda reply_to: e.commands_received(tuple(commands), reply_to=reply_to)
        )
        return outcomes

    async def settled(
        self,
        topics: Collection[str],
        is_settled: Callable[[str, TopicView | None], bool],
        *,
        timeout_s: float,
    ) -> Collection[str]:
        """See :class:`~regent.runtime.ports.ControllerRequests`."""
        return await self._waits.settled(topics, is_settled, timeout_s=timeout_s)

    async def propagated(self, *, timeout_s: float) -> bool:
        """See :class:`~regent.runtime.ports.ControllerRequests`."""
        return await self._waits.propagated(timeout_s=timeout_s)

    def lagging_brokers(self) -> Collection[int]:
        """See :class:`~regent.runtime.ports.ControllerRequests`."""
        return self._waits.lagging_brokers()

    async def _ask(self, event: Callable[[Callable[[Any], None]], e.ControllerEvent]) -> Any:
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

        def answer(value: Any) -> None:
            if not future.done():  # else nobody waits any more: the connection was closed
                future.set_result(value)

        self._put(event(answer))
        return await future

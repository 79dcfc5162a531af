"""Requests to the controller as events of its queue, each with its answer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from regent.controller import events as e
from regent.controller.broker_requests import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
    AlterPartitionRequest,
    AlterPartitionResponse,
    Asked,
)
from regent.controller.commands import Command, Outcome
from regent.controller.view import ClusterView


class QueuedRequests:
    """Implements :class:`~regent.runtime.ports.ControllerRequests`.

    Args:
        put: Appends an event to the queue.
        view: The newest view.
    """

    def __init__(
        self, put: Callable[[e.ControllerEvent], None], view: Callable[[], ClusterView]
    ) -> None:
        self._put = put
        self._view = view

    @property
    def view(self) -> ClusterView:
        return self._view()

    async def alter_partition(self, request: AlterPartitionRequest) -> AlterPartitionResponse:
        """See :class:`~regent.runtime.ports.ControllerRequests`."""
        answer: AlterPartitionResponse = await self._ask(
            lambda reply_to: e.AlterPartitionReceived((Asked(request, reply_to),))
        )
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
        outcomes: tuple[Outcome, ...] = await self._ask(
            lambda reply_to: e.commands_received((command,), reply_to=reply_to)
        )
        return outcomes[0]

    async def _ask(self, event: Callable[[Callable[[Any], None]], e.ControllerEvent]) -> Any:
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

        def answer(value: Any) -> None:
            if not future.done():  # else nobody waits any more: the connection was closed
                future.set_result(value)

        self._put(event(answer))
        return await future

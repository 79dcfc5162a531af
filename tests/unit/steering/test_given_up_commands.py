"""Commands for whose outcome nobody waits any more."""

from __future__ import annotations

import asyncio
import concurrent.futures

from regent.admin.commands import Accepted, CreateTopic, Rejected
from regent.runtime.command_reply import CommandReply
from regent.zk_data import paths
from tests.unit.steering.client_world import ClientWorld


async def test_what_nobody_waits_for_any_more_is_not_carried_out() -> None:
    async with ClientWorld() as world:
        await world.known()
        replies = [CommandReply(concurrent.futures.Future()) for _ in range(2)]
        for name, reply in zip(("given-up", "awaited"), replies, strict=True):
            world.loop.submit((CreateTopic(name, 1, 1),), reply)
        replies[0].is_given_up = True
        outcomes = [await asyncio.wrap_future(reply.future) for reply in replies]
        assert isinstance(outcomes[0][0], Rejected)
        assert outcomes[1] == (Accepted(),)
        assert world.server.children(paths.BROKER_TOPICS) == ("awaited",)

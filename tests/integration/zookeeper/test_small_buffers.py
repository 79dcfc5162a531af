"""Servers that take smaller requests than the settings say."""

from __future__ import annotations

import pytest

from regent.model.errors import ZooKeeperUnavailableError
from regent.zk_data.operations import Check, Create
from sandbox import ZooKeeper
from sandbox.java import TUNED_FOR_QUICK_START
from tests.integration.zookeeper.harness import connected, settings_for

pytestmark = [pytest.mark.integration, pytest.mark.slow]


async def test_requests_that_servers_do_not_take_lead_to_the_setting() -> None:
    """They close the connection, and say why in their own log only."""
    options = [*TUNED_FOR_QUICK_START, "-Djute.maxbuffer=70000"]
    with ZooKeeper(java_options=options) as server:
        # A write is given up when a session would have ended.
        settings = settings_for(server.connect_string, session_timeout_ms=10_000)
        async with connected(settings) as client:
            await client.port.multi([Create("/guard", b"")])
            with pytest.raises(ZooKeeperUnavailableError, match="zookeeper_jute_max_buffer"):
                await client.port.write([Create("/large", 80_000 * b"x")], guard=Check("/guard", 0))

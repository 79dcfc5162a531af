"""Asking all brokers for the sizes of their replicas, each on a connection of its own.

The controller's channels are not used: an answer of many megabytes would keep a broker's control
requests waiting, and whoever takes a snapshot need not be the controller.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping
from typing import Final

from regent.model.cluster import Broker, EndPoint
from regent.model.errors import ConfigurationError
from regent.model.log_dirs import LogDirs
from regent.network.api_versions import ask_versions
from regent.network.broker_identity import require_identity
from regent.network.connection import BrokerConnection
from regent.network.connection_problem import connection_problem, endpoint_text
from regent.network.settings import ChannelSettings
from regent.protocol import log_dirs
from regent.protocol.api_versions import UnsupportedBrokerError
from regent.protocol.connection_setup import AuthenticationError
from regent.protocol.primitives import DecodeError

CLIENT_ID: Final = "regent-snapshot"

_AT_ONCE: Final = 16
"""Brokers that are asked at the same time: so many answers are in memory at most."""

_FAILURES: Final = (
    OSError,
    TimeoutError,
    DecodeError,
    AuthenticationError,
    UnsupportedBrokerError,
    ConfigurationError,
)


async def ask_log_dirs(
    brokers: Collection[Broker], settings: ChannelSettings
) -> Mapping[int, LogDirs | str]:
    """What each broker has in its log directories, by its id; or why that is not known.

    Each is asked once on each listener that the settings can use, until one answers.
    """
    turns = asyncio.Semaphore(_AT_ONCE)

    async def ask(broker: Broker) -> LogDirs | str:
        async with turns:
            return await _ask_one(broker, settings)

    async with asyncio.TaskGroup() as group:
        asking = {broker.broker_id: group.create_task(ask(broker)) for broker in brokers}
    return {broker_id: task.result() for broker_id, task in sorted(asking.items())}


async def _ask_one(broker: Broker, settings: ChannelSettings) -> LogDirs | str:
    problem = "it has no listener that the settings for brokers (broker_*) can use"
    for endpoint in settings.candidates(broker):
        try:
            answer = await _ask_at(endpoint, broker.broker_id, settings)
        except _FAILURES as error:
            problem = str(connection_problem(error, endpoint=endpoint, settings=settings))
        else:
            if isinstance(answer, LogDirs):
                return answer
            problem = f"{endpoint_text(endpoint)}: it answers DescribeLogDirs with {answer}"
    return problem


async def _ask_at(endpoint: EndPoint, broker_id: int, settings: ChannelSettings) -> LogDirs | str:
    connection = await BrokerConnection.open(endpoint, client_id=CLIENT_ID, settings=settings)
    try:
        async with asyncio.timeout(settings.response_timeout):
            supported = await ask_versions(connection)
            await require_identity(connection, broker_id, supported=supported)
            version = log_dirs.chosen_version(supported.get(log_dirs.API_KEY))
            body = await connection.round_trip(
                log_dirs.API_KEY,
                version,
                (log_dirs.encode_request(version),),
                flexible=log_dirs.is_flexible(version),
            )
    finally:
        connection.close()
    # A large answer takes a moment to be read.
    return await asyncio.to_thread(log_dirs.decode_response, body, version=version)

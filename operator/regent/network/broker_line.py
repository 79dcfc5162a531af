"""A connection to one broker, beside the controller's channels: opened with the first request and
kept for the next one. Requests wait for each other.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from regent.model.cluster import Broker, EndPoint
from regent.model.errors import (
    BrokerQuestionError,
    BrokerSilentError,
    BrokerTooOldError,
    BrokerUnreachedError,
)
from regent.network.broker_identity import require_identity
from regent.network.connection import BrokerConnection
from regent.network.connection_problem import connection_problem
from regent.network.settings import ChannelSettings
from regent.protocol.api_versions import VersionRange
from regent.protocol.connection_setup import (
    AuthenticationError,
    api_versions_request,
    decode_api_versions_response,
)
from regent.protocol.primitives import DecodeError

ANSWER_S: Final = 10.0
"""For an answer, in seconds."""

_CONNECT_S: Final = 5.0
"""To open a connection, with TLS and SASL."""

_FAILURES: Final = (OSError, DecodeError, AuthenticationError)
"""What goes wrong with a connection; TimeoutError is an OSError."""


class BrokerLine:
    """The connection to one broker."""

    def __init__(self, broker: Broker, *, client_id: str, settings: ChannelSettings) -> None:
        self.broker = broker
        self._client_id = client_id
        self._settings = msgspec.structs.replace(settings, connect_timeout=_CONNECT_S)
        self._turn = asyncio.Lock()
        self._connection: BrokerConnection | None = None
        self._supported: Mapping[int, VersionRange] = {}
        self._failures = 0

    async def ask(self, api_key: int, versions: range, body: bytes) -> bytes:
        """Send a request of the legacy encoding, the same in all these versions; the body of its
        answer. Raises what :meth:`exchange` does."""
        _, answer = await self.exchange(api_key, versions, lambda _: body)
        return answer

    async def exchange(
        self,
        api_key: int,
        versions: range,
        encode: Callable[[int], bytes],
        *,
        is_flexible: Callable[[int], bool] = lambda _: False,
        answer_s: float = ANSWER_S,
    ) -> tuple[int, bytes]:
        """Send a request in the newest version that the broker understands, too; that version, and
        the body of the answer.

        Args:
            versions: Those that are understood here.
            encode: The body for a version.
            is_flexible: Whether a version has the compact encoding.
            answer_s: Seconds for the answer.

        Raises:
            BrokerTooOldError: If the broker understands none of the versions.
            BrokerUnreachedError: If there is no connection.
            BrokerSilentError: If there is no answer in time.
            BrokerQuestionError: If there is no answer.
        """
        async with self._turn:
            endpoint = self._endpoint()
            is_connected = False
            try:
                connection = await self._connect(endpoint)
                is_connected = True
                version = self._version(api_key, versions)
                async with asyncio.timeout(answer_s):
                    answer = await connection.round_trip(
                        api_key, version, (encode(version),), flexible=is_flexible(version)
                    )
            except _FAILURES as error:
                self._failures += 1
                self.close()
                problem = connection_problem(error, endpoint=endpoint, settings=self._settings)
                if not is_connected:
                    raise BrokerUnreachedError(str(problem)) from error
                if isinstance(error, TimeoutError):
                    raise BrokerSilentError(str(problem)) from error
                raise BrokerQuestionError(str(problem)) from error
            except BaseException:
                self.close()  # an answer may still come
                raise
            return version, answer

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _endpoint(self) -> EndPoint:
        """Where to ask: another listener after each failure, if there are several."""
        candidates = self._settings.candidates(self.broker)
        if not candidates:
            raise BrokerUnreachedError("it has no listener that Regent's settings can use")
        return candidates[self._failures % len(candidates)]

    async def _connect(self, endpoint: EndPoint) -> BrokerConnection:
        if self._connection is not None and not self._connection.is_lost:
            return self._connection
        self.close()
        self._connection = connection = await BrokerConnection.open(
            endpoint, client_id=self._client_id, settings=self._settings
        )
        async with asyncio.timeout(ANSWER_S):
            # Every broker understands this version.
            answer = await connection.set_up(api_versions_request("", version=0))
            self._supported = decode_api_versions_response(0, answer)
            await require_identity(connection, self.broker.broker_id, supported=self._supported)
        return connection

    def _version(self, api_key: int, versions: range) -> int:
        known = self._supported.get(api_key)
        common = [v for v in versions if known is not None and known.lowest <= v <= known.highest]
        if not common:
            raise BrokerTooOldError(
                f"it does not understand versions {versions[0]} to {versions[-1]} of API {api_key}"
            )
        return common[-1]

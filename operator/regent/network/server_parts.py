"""What the connections of a server of Kafka's protocol share."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from concurrent.futures import Executor
from typing import Any, Protocol

from regent.network.connection_registry import ConnectionRegistry
from regent.network.pass_through import PassThrough
from regent.network.refusal_log import RefusalLog
from regent.network.server_settings import ServerSettings
from regent.network.server_statistics import CloseLog, ServerStatistics
from regent.network.tls import Tls
from regent.protocol.server_codec import Request, ServerCodec
from regent.protocol.serving import Admit, Credentials, Dispatcher


class ServerParts(Protocol):
    """What connections get from their server."""

    settings: ServerSettings
    codec: ServerCodec
    tls: Tls | None
    credentials: Credentials | None
    registry: ConnectionRegistry
    statistics: ServerStatistics
    close_log: CloseLog
    refusals: RefusalLog
    slots: asyncio.Semaphore
    decoders: Mapping[bool, Executor]
    dispatcher: Dispatcher
    admit: Admit
    pass_through: PassThrough | None
    passed_on: Mapping[int, str]

    def api_versions(self, request: Request, /) -> Any:
        """Answer to an ApiVersions request."""
        ...

    @property
    def is_stopping(self) -> bool:
        """Whether no further request is to be taken."""
        ...

import logging
from collections.abc import Mapping
from typing import Any

from kazoo.client import KazooClient
from kazoo.retry import KazooRetry

_CONNECTION_DROP: object
"""Handed to ``KazooClient._call`` in tests: drops the connection."""

class ConnectionHandler:
    client: KazooClient
    sasl_options: Mapping[str, str] | None
    def __init__(
        self,
        client: KazooClient,
        retry_sleeper: KazooRetry,
        logger: logging.Logger | None = ...,
        sasl_options: Mapping[str, str] | None = ...,
    ) -> None: ...
    def stop(self, timeout: float | None = ...) -> bool: ...
    def close(self) -> None: ...
    def _invoke(self, timeout: float, request: object, xid: int | None = ...) -> Any: ...

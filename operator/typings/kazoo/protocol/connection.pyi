import logging
import socket
from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Any

from kazoo.client import KazooClient
from kazoo.retry import KazooRetry

_CONNECTION_DROP: object
"""Handed to ``KazooClient._call`` in tests: drops the connection."""

PING_XID: int

class ConnectionHandler:
    client: KazooClient
    sasl_options: Mapping[str, str] | None
    handler: Any
    _socket: socket.socket
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
    def _socket_error_handling(self) -> AbstractContextManager[None]: ...
    def _read(self, length: int, timeout: float) -> bytes: ...
    def _read_socket(self, read_timeout: float) -> Any: ...
    def _read_watch_event(self, buffer: bytes, offset: int) -> None: ...

import logging
import threading
from collections import defaultdict, deque
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from kazoo.handlers.threading import SequentialThreadingHandler
from kazoo.protocol.connection import ConnectionHandler
from kazoo.protocol.states import WatchedEvent, ZnodeStat
from kazoo.retry import KazooRetry
from kazoo.security import ACL

class _Result(Protocol):
    def set(self, value: object, /) -> None: ...
    def set_exception(self, exception: Exception, /) -> None: ...

class _Content(Protocol):
    def get(self) -> tuple[bytes, ZnodeStat]: ...

class TransactionRequest:
    def create(
        self,
        path: str,
        value: bytes = ...,
        acl: Sequence[ACL] | None = ...,
        ephemeral: bool = ...,
        sequence: bool = ...,
    ) -> None: ...
    def delete(self, path: str, version: int = ...) -> None: ...
    def set_data(self, path: str, value: bytes, version: int = ...) -> None: ...
    def check(self, path: str, version: int) -> None: ...
    def commit(self) -> list[object]: ...

class KazooClient:
    retry: KazooRetry
    handler: SequentialThreadingHandler
    logger: logging.Logger
    hosts: list[tuple[str, int]]
    state: str
    _state: str
    _session_timeout: int
    _stopped: threading.Event
    _session_id: int | None
    _queue: deque[tuple[object, _Result]]
    _data_watchers: defaultdict[str, set[Callable[[WatchedEvent], None]]]
    _child_watchers: defaultdict[str, set[Callable[[WatchedEvent], None]]]
    last_zxid: int
    _connection: ConnectionHandler
    _conn_retry: KazooRetry
    def __init__(
        self,
        hosts: str = ...,
        timeout: float = ...,
        client_id: tuple[int, bytes] | None = ...,
        *,
        handler: SequentialThreadingHandler | None = ...,
        default_acl: Sequence[ACL] | None = ...,
        auth_data: Sequence[tuple[str, str]] | None = ...,
        sasl_options: Mapping[str, str] | None = ...,
        read_only: bool | None = ...,
        randomize_hosts: bool = ...,
        connection_retry: Mapping[str, float | int | None] | KazooRetry | None = ...,
        command_retry: Mapping[str, float | int | None] | KazooRetry | None = ...,
        logger: logging.Logger | None = ...,
        keyfile: str | None = ...,
        keyfile_password: str | None = ...,
        certfile: str | None = ...,
        ca: str | None = ...,
        use_ssl: bool = ...,
        verify_certs: bool = ...,
        check_hostname: bool = ...,
    ) -> None: ...
    @property
    def client_state(self) -> str: ...
    @property
    def client_id(self) -> tuple[int, bytes] | None: ...
    @property
    def connected(self) -> bool: ...
    def add_listener(self, listener: Callable[[str], bool | None]) -> None: ...
    def remove_listener(self, listener: Callable[[str], bool | None]) -> None: ...
    def start(self, timeout: float = ...) -> None: ...
    def start_async(self) -> threading.Event: ...
    def stop(self) -> None: ...
    def close(self) -> None: ...
    def exists(
        self, path: str, watch: Callable[[WatchedEvent], None] | None = ...
    ) -> ZnodeStat | None: ...
    def create(
        self,
        path: str,
        value: bytes = ...,
        acl: Sequence[ACL] | None = ...,
        ephemeral: bool = ...,
        sequence: bool = ...,
        makepath: bool = ...,
    ) -> str: ...
    def set(self, path: str, value: bytes, version: int = ...) -> ZnodeStat: ...
    def delete(self, path: str, version: int = ..., recursive: bool = ...) -> None: ...
    def transaction(self) -> TransactionRequest: ...
    def get(
        self, path: str, watch: Callable[[WatchedEvent], None] | None = ...
    ) -> tuple[bytes, ZnodeStat]: ...
    def get_async(self, path: str) -> _Content: ...
    def get_children(self, path: str) -> list[str]: ...
    def set_acls(self, path: str, acls: Sequence[ACL], version: int = ...) -> ZnodeStat: ...
    def _call(self, request: object, async_object: _Result) -> bool | None: ...
    def _session_callback(self, state: str) -> None: ...
    def _safe_close(self) -> None: ...

import socket
from typing import Any

from kazoo.protocol.states import Callback

class KazooTimeoutError(Exception): ...

class SequentialThreadingHandler:
    def __init__(self) -> None: ...
    def create_connection(self, *args: Any, **kwargs: Any) -> socket.socket: ...
    def dispatch_callback(self, callback: Callback) -> None: ...
    def select(
        self,
        readers: list[Any],
        writers: list[Any],
        errors: list[Any],
        timeout: float | None,
        /,
    ) -> tuple[list[Any], list[Any], list[Any]]: ...
    def stop(self) -> None: ...

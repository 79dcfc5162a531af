from collections.abc import Callable, Sequence
from typing import ClassVar, NamedTuple

from kazoo.protocol.states import WatchedEvent
from kazoo.security import ACL

class Connect(NamedTuple):
    protocol_version: int
    last_zxid_seen: int
    time_out: int
    session_id: int
    passwd: bytes
    read_only: bool

class Ping(NamedTuple): ...

class Create:
    type: ClassVar[int]
    def __init__(self, path: str, data: bytes, acl: Sequence[ACL], flags: int) -> None: ...

class SetData:
    type: ClassVar[int]
    def __init__(self, path: str, data: bytes, version: int) -> None: ...

class Delete:
    type: ClassVar[int]
    def __init__(self, path: str, version: int) -> None: ...

class CheckVersion:
    type: ClassVar[int]
    def __init__(self, path: str, version: int) -> None: ...

class Transaction:
    type: ClassVar[int]
    def __init__(self, operations: Sequence[object]) -> None: ...
    def serialize(self) -> bytearray: ...

class Exists:
    type: ClassVar[int]
    def __init__(self, path: str, watcher: Callable[[WatchedEvent], None] | None) -> None: ...

class GetData:
    type: ClassVar[int]
    def __init__(self, path: str, watcher: Callable[[WatchedEvent], None] | None) -> None: ...

class GetChildren:
    type: ClassVar[int]
    def __init__(self, path: str, watcher: Callable[[WatchedEvent], None] | None) -> None: ...

class Sync:
    type: ClassVar[int]
    def __init__(self, path: str) -> None: ...

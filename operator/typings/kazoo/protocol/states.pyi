from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

class KazooState:
    SUSPENDED: ClassVar[str]
    CONNECTED: ClassVar[str]
    LOST: ClassVar[str]

class KeeperState:
    AUTH_FAILED: ClassVar[str]
    CONNECTED: ClassVar[str]
    CONNECTED_RO: ClassVar[str]
    CONNECTING: ClassVar[str]
    CLOSED: ClassVar[str]
    EXPIRED_SESSION: ClassVar[str]

class EventType:
    CREATED: ClassVar[str]
    DELETED: ClassVar[str]
    CHANGED: ClassVar[str]
    CHILD: ClassVar[str]
    NONE: ClassVar[str]

class WatchedEvent(NamedTuple):
    type: str
    state: str
    path: str

class Callback(NamedTuple):
    type: str
    func: Callable[..., Any]
    args: tuple[Any, ...]

class ZnodeStat(NamedTuple):
    czxid: int
    mzxid: int
    ctime: int
    mtime: int
    version: int
    cversion: int
    aversion: int
    ephemeralOwner: int
    dataLength: int
    numChildren: int
    pzxid: int

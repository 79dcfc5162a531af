"""ZooKeeper as anybody sees it: read with kazoo, decoded with json and nothing of Regent's."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Self

from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError
from kazoo.protocol.states import WatchedEvent, ZnodeStat

from tests.support.metadata import Partition


class Znode(NamedTuple):
    """Content of a node, and everything of its stat that a write by anybody would change."""

    data: bytes
    czxid: int
    mzxid: int
    pzxid: int
    version: int
    owner: int


class Moment:
    """When something happened first; monotonic seconds."""

    def __init__(self) -> None:
        self._happened = threading.Event()
        self._at = 0.0

    def now(self, _event: WatchedEvent | None = None) -> None:
        """It happens. Usable as a watch of kazoo."""
        if not self._happened.is_set():
            self._at = time.monotonic()
            self._happened.set()

    def wait(self, what: str, *, timeout_s: float = 120.0) -> float:
        """When it happened; waits until it does."""
        assert self._happened.wait(timeout_s), f"waited {timeout_s:g} s for {what}"
        return self._at


class Znodes:
    """The znodes of one Kafka cluster, read with further options of kazoo."""

    def __init__(self, connect_string: str, **client_options: Any) -> None:
        self.client = KazooClient(
            connect_string,
            **client_options,
            timeout=30.0,
            # some minutes without a server: longer than any outage of a test
            connection_retry={"max_tries": 500, "max_delay": 0.5},
            command_retry={"max_tries": -1, "max_delay": 0.5},
        )

    def __enter__(self) -> Self:
        self.client.start(timeout=120)
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.client.stop()
        self.client.close()

    def get(self, path: str) -> tuple[bytes, ZnodeStat] | None:
        """Content and stat, None if there is no such node."""
        try:
            data, stat = self.client.retry(self.client.get, path)
        except NoNodeError:
            return None
        return data, stat

    def json(self, path: str) -> Any:
        """Decoded content; None if there is no such node."""
        found = self.get(path)
        return None if found is None else json.loads(found[0])

    def children(self, path: str) -> list[str]:
        """Names of the children in order, none if there is no such node."""
        try:
            return sorted(self.client.retry(self.client.get_children, path))
        except NoNodeError:
            return []

    def dump(self, path: str = "/") -> dict[str, Znode]:
        """Every node below ``path``, and itself, by path."""
        nodes: dict[str, Znode] = {}
        remaining = [path]
        while remaining:
            current = remaining.pop()
            found = self.get(current)
            if found is None:
                continue
            data, stat = found
            nodes[current] = Znode(
                data, stat.czxid, stat.mzxid, stat.pzxid, stat.version, stat.ephemeralOwner
            )
            prefix = current.rstrip("/")
            remaining += [f"{prefix}/{child}" for child in self.children(current)]
        return nodes

    def watch(self, path: str) -> Moment:
        """The moment of the next change of a node: created, changed or deleted."""
        moment = Moment()
        self.client.retry(self.client.exists, path, watch=moment.now)
        return moment

    # The cluster

    def controller(self) -> int | None:
        """Id in ``/controller``."""
        content = self.json("/controller")
        return None if content is None else int(content["brokerid"])

    def controller_epoch(self) -> int:
        """The epoch. Each election has raised it by exactly one: it counts the writes.

        It is created with 0 and version 0, and an election sets it to one more: as long as nobody
        ever raises it by more than one, or twice, epoch and version are the same number; or one
        apart if a broker of Kafka 1.x was the first controller: it creates the node with 1.
        """
        found = self.get("/controller_epoch")
        if found is None:
            return 0
        data, stat = found
        assert int(data) - stat.version in (0, 1), f"epoch {data!r} after {stat.version} writes"
        return int(data)

    def elections(self) -> int:
        """How many there were since the first, whichever version the brokers have."""
        found = self.get("/controller_epoch")
        return 0 if found is None else found[1].version

    def broker_ids(self) -> list[int]:
        """Ids of the registered brokers. A Regent that is registered, too, is none."""
        registered = {
            int(child): self.json(f"/brokers/ids/{child}")
            for child in self.children("/brokers/ids")
        }
        return sorted(
            broker_id
            for broker_id, content in registered.items()
            if content is not None and "regentController" not in content
        )

    def topics(self) -> list[str]:
        return self.children("/brokers/topics")

    def assignment(self, topic: str) -> dict[int, list[int]] | None:
        """Replicas of each partition, None if there is no such topic."""
        content = self.json(f"/brokers/topics/{topic}")
        if content is None:
            return None
        return {int(p): replicas for p, replicas in sorted(content["partitions"].items())}

    def state(self, topic: str, partition: int = 0) -> dict[str, Any]:
        """A partition's state; empty if it has none."""
        return self.json(state_path(topic, partition)) or {}

    def states(self, *topics: str) -> dict[Partition, dict[str, Any]]:
        """The states of all partitions of some topics, or of all topics; read at the same time."""
        pending = {
            (topic, partition): self.client.get_async(state_path(topic, partition)).get
            for topic in topics or self.topics()
            for partition in self.assignment(topic) or {}
        }
        return {tp: _state(answer) for tp, answer in pending.items()}

    def lagging(self, *topics: str) -> dict[str, Any]:
        """States of partitions of some topics, or of all, that lack a replica in the ISR."""
        return {
            f"{topic}-{partition}": state
            for topic in topics or self.topics()
            for partition, replicas in (self.assignment(topic) or {0: [-1]}).items()
            if sorted((state := self.state(topic, partition)).get("isr", [])) != sorted(replicas)
        }

    def create_topic(self, topic: str, assignment: Mapping[int, list[int]]) -> None:
        """Write what the tools of Kafka 1.x and 2.x write: no controller is asked."""
        partitions = {str(partition): replicas for partition, replicas in assignment.items()}
        content = {"version": 1, "partitions": partitions}
        self.client.create(f"/config/topics/{topic}", b'{"version":1,"config":{}}')
        self.client.create(f"/brokers/topics/{topic}", json.dumps(content).encode())

    def config(self, topic: str) -> dict[str, str] | None:
        """A topic's own configuration, None if it has none."""
        content = self.json(f"/config/topics/{topic}")
        return None if content is None else content["config"]


def _state(answer: Callable[[], tuple[bytes, ZnodeStat]]) -> dict[str, Any]:
    try:
        data, _stat = answer()
    except NoNodeError:
        return {}
    state: dict[str, Any] = json.loads(data)
    return state


def state_path(topic: str, partition: int = 0) -> str:
    return f"/brokers/topics/{topic}/partitions/{partition}/state"


def forget_follower(znodes: Znodes, name: str, *, leader: int) -> None:
    """Take everybody but the leader out of a partition's ISR, for good.

    The leader cannot take them in again: it finds another version of the node than its own.
    """
    state = znodes.state(name)
    assert state["leader"] == leader
    state["isr"] = [leader]
    znodes.client.set(state_path(name), json.dumps(state).encode())


REPORTS_OF_ISRS = "/isr_change_notification"
"""Where leaders up to inter.broker.protocol.version 2.6 report the ISRs that they have changed, up
to some seconds later. The controller removes what it has read."""


def difference(before: dict[str, Znode], after: dict[str, Znode]) -> dict[str, tuple[Any, Any]]:
    """What was created, changed or deleted between two dumps: path -> (before, after).

    But for reports of ISRs, which brokers write on their own.
    """
    return {
        path: (before.get(path), after.get(path))
        for path in sorted(before.keys() | after.keys())
        if before.get(path) != after.get(path) and not path.startswith(REPORTS_OF_ISRS)
    }

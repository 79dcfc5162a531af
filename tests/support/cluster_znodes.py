"""What ZooKeeper says of a cluster: its controller, its leaders, its assignments."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from kazoo.client import KazooClient


def controller(zookeeper: KazooClient) -> int:
    """The id of the controller."""
    return int(_read(zookeeper, "/controller")["brokerid"])


def leaderships(zookeeper: KazooClient) -> dict[str, tuple[int, int]]:
    """Leader and leader epoch of every partition: the epoch counts each change of the leader."""
    found = {}
    for name, number in _partitions(zookeeper):
        state = _read(zookeeper, f"/brokers/topics/{name}/partitions/{number}/state")
        found[f"{name}-{number}"] = (state["leader"], state["leader_epoch"])
    return found


def assignments(zookeeper: KazooClient) -> dict[str, list[int]]:
    """The replicas of every partition, the preferred leader first."""
    return {
        f"{name}-{number}": replicas
        for name in zookeeper.get_children("/brokers/topics")
        for number, replicas in _read(zookeeper, f"/brokers/topics/{name}")["partitions"].items()
    }


def moving(zookeeper: KazooClient, topic: str) -> list[str]:
    """Partitions of a topic that are getting replicas."""
    adding = _read(zookeeper, f"/brokers/topics/{topic}").get("adding_replicas", {})
    return [number for number, replicas in adding.items() if replicas]


def _partitions(zookeeper: KazooClient) -> Iterator[tuple[str, str]]:
    for name in zookeeper.get_children("/brokers/topics"):
        for number in zookeeper.get_children(f"/brokers/topics/{name}/partitions"):
            yield name, number


def _read(zookeeper: KazooClient, path: str) -> dict[str, Any]:
    value: dict[str, Any] = json.loads(zookeeper.get(path)[0])
    return value

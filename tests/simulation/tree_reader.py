"""Reads of the core, performed on the tree itself: the truth, whoever may see it."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any, TypeVar

from regent.simulation.zookeeper import InMemoryZooKeeper
from regent.zk_data import effects as zk_effects

T = TypeVar("T")


class TreeReader:
    """Performs the reading effects of the core on the tree itself."""

    def __init__(self, zookeeper: InMemoryZooKeeper) -> None:
        self._zookeeper = zookeeper

    def run(self, process: Coroutine[zk_effects.Effect[Any], Any, T]) -> T:
        """Run a coroutine that reads data and children, and nothing else."""
        result: Any = None
        while True:
            try:
                effect = process.send(result)
            except StopIteration as stop:
                return stop.value  # type: ignore[no-any-return]
            match effect:
                case zk_effects.ReadData():
                    nodes = [self._zookeeper.get(path) for path in effect.paths]
                    result = effect.result(nodes)
                case zk_effects.ReadChildren():
                    result = [self._zookeeper.children(path) for path in effect.paths]
                case _:
                    raise AssertionError(f"loading awaits {effect!r}")

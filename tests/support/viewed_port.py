"""A controller, as far as its view goes: a test sets that."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from regent.admin.commands import Outcome
from regent.controller.commands import Command
from regent.controller.view import ClusterView


class ViewedPort:
    """A :class:`~regent.runtime.ports.ControllerPort` that tells nobody of a new view."""

    def __init__(self) -> None:
        self.view = ClusterView()

    def subscribe(self, listener: Callable[[frozenset[str] | None], None]) -> None:
        """Nobody is told."""

    async def submit(self, commands: Sequence[Command]) -> Sequence[Outcome]:
        return ()

"""Which Regent process may become the controller: the election of ``regent.zookeeper``, in brief.

A term ends with the session of its holder. The servers know at once, the holder when it is told:
for a while two processes take themselves for the elected one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from regent.controller import events as e
from tests.simulation.driver import RegentProcess

if TYPE_CHECKING:
    from tests.simulation.world import World


class Elector:
    """Elects whenever there is no controller."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._holder: RegentProcess | None = None
        self._session_id = 0

    @property
    def holder(self) -> RegentProcess | None:
        return self._holder

    def act(self) -> bool:
        """Elect somebody, if there is need and a candidate."""
        if self._holder is not None and self._world.zookeeper.is_alive(self._session_id):
            return False
        candidates = [
            p
            for p in self._world.regents
            if p.is_alive and p.client.is_connected and p.known_session_id == p.client.session_id
        ]
        if not candidates:
            return False
        self._holder = self._world.rng.choice(candidates)
        self._session_id = self._holder.client.session_id
        self._world.trace.line("elector", "elects", self._holder.name)
        self._holder.put(e.Eligible())
        return True

    def session_ended(self, process: RegentProcess) -> None:
        """A process has learned that its session is gone, and its term with it."""
        process.put(e.NotEligible())

    def depose(self) -> None:
        """Somebody deletes the holder's node in the election."""
        if self._holder is not None and self._holder.is_alive:
            self._world.trace.line("elector", "deposes", self._holder.name)
            self._holder.put(e.NotEligible())
        self._holder = None

"""What the replicas of Regent hear of each other: ``regent.network.heartbeats``, in brief.

Who lives and is not paused answers at once. Who does not answer is suspected by those that have
heard it under its session, and unheard by the others. It is reported again every second.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from regent.controller import effects as fx
from regent.controller import events as e
from tests.simulation.driver import RegentProcess

if TYPE_CHECKING:
    from tests.simulation.world import World

REPEAT_MS: Final = 1_000


class Hearing:
    """Tells replicas who does not answer; pairs of slots, the lower first, can be cut."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._heard: dict[RegentProcess, dict[int, None]] = {}
        self._reported: dict[RegentProcess, e.ReplicasAbsent] = {}
        self.cut: list[tuple[int, int]] = []

    def act(self) -> bool:
        """Have one of them hear the others; whether it was told something new."""
        return any(self._listen(process) for process in self._world.regents)

    def has_heard(self, process: RegentProcess, session_id: int) -> bool:
        return session_id in self._heard.get(process, {})

    def still_absent(self, process: RegentProcess, effect: fx.StillAbsent) -> tuple[int, ...]:
        """What the effect asks for. Where chance decides who is suspected, it stays so."""
        asked = (*effect.suspected, *effect.unheard)
        if not self._world.swarm.hears:
            return asked
        return tuple(session for session in asked if not self._answers(process, session))

    def _listen(self, process: RegentProcess) -> bool:
        own = process.client.session_id
        if not process.is_alive or process.is_paused or process.known_session_id != own:
            return False
        heard = self._heard.setdefault(process, {})
        others = dict.fromkeys(self._world.elector.others_in_the_queue(process))
        silent = [session for session in others if not self._answers(process, session)]
        heard.update(dict.fromkeys(session for session in others if session not in silent))
        found = e.ReplicasAbsent(
            own,
            tuple(
                e.AbsentReplica(s, "suspected", self._world.regent_of(s) is None)
                for s in silent
                if s in heard
            ),
            unheard=tuple(e.AbsentReplica(s, "unheard") for s in silent if s not in heard),
        )
        is_active = process.controller.active is not None
        if is_active or not found.absent or self._reported.get(process) == found:
            return False
        self._reported[process] = found

        def repeat() -> None:
            self._reported.pop(process, None)

        self._world.clock.after(REPEAT_MS, repeat)
        self._world.trace.line(process.name, "suspects", f"{found.absent} unheard={found.unheard}")
        process.put(found)
        return True

    def _answers(self, process: RegentProcess, session_id: int) -> bool:
        other = self._world.regent_of(session_id)
        if other is None or other.is_paused:
            return False
        return (min(process.slot, other.slot), max(process.slot, other.slot)) not in self.cut

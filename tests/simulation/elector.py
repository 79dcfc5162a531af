"""Which Regent process may become the controller: the election of ``regent.zookeeper``, in brief.

A term ends with the session of its holder. The servers know at once, the holder when it is told:
for a while two processes take themselves for the elected one.

In a world in which replicas suspect each other they stand in a queue of znodes, as in reality: the
first in it is elected, and a place that somebody deletes ends a term.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from regent.controller import events as e
from regent.simulation.zookeeper import InMemoryClient
from regent.zk_data.operations import Create, Delete, Operation
from regent.zk_data.replicas import presence_node, presence_path, queue_order
from tests.simulation.driver import RegentProcess

if TYPE_CHECKING:
    from tests.simulation.world import World

QUEUE: Final = "/regent/election"


class Elector:
    """Elects whenever there is no controller."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._holder: RegentProcess | None = None
        self._session_id = 0
        self._read_at = -1
        self._places: list[tuple[str, int]] = []

    @property
    def holder(self) -> RegentProcess | None:
        return self._holder

    def act(self) -> bool:
        """Elect somebody, if there is need and a candidate."""
        if self._world.swarm.suspects:
            return self._queue_up() or self._follow_queue()
        if self._holder is not None and self._world.zookeeper.is_alive(self._session_id):
            return False
        candidates = self._candidates()
        if not candidates:
            return False
        self._elect(self._world.rng.choice(candidates))
        return True

    def session_ended(self, process: RegentProcess) -> None:
        """A process has learned that its session is gone, and its term with it."""
        process.put(e.NotEligible())

    def queue_up_again(self, process: RegentProcess) -> None:
        """A process gives its place up, for the others."""
        if process is self._holder and process.known_session_id == self._session_id:
            self.depose()

    def depose(self) -> None:
        """Somebody deletes the holder's node in the election."""
        if self._holder is not None and self._holder.is_alive:
            self._world.trace.line("elector", "deposes", self._holder.name)
            if self._world.swarm.suspects:
                self._world.workload.multi(*map(Delete, self._places_of(self._session_id)))
                return
            self._holder.put(e.NotEligible())
        self._holder = None

    def _candidates(self) -> list[RegentProcess]:
        return [
            p
            for p in self._world.regents
            if p.is_alive and p.client.is_connected and p.known_session_id == p.client.session_id
        ]

    def _elect(self, process: RegentProcess) -> None:
        self._holder = process
        self._session_id = process.client.session_id
        self._world.trace.line("elector", "elects", process.name)
        process.put(e.Eligible())

    # The queue

    def open_queue(self, client: InMemoryClient) -> None:
        """Create its parents."""
        for path in ("/regent", QUEUE, presence_path(QUEUE)):
            client.multi([Create(path)])

    def others_in_the_queue(self, process: RegentProcess) -> list[int]:
        """Sessions of the others that have a place, in the order of the queue."""
        own = process.client.session_id
        return [session_id for _, session_id in self._queue() if session_id != own]

    def first_in_the_queue(self) -> int | None:
        """Session of whoever is next."""
        queue = self._queue()
        return queue[0][1] if queue else None

    def _queue(self) -> list[tuple[str, int]]:
        """Place and session, in order."""
        zookeeper = self._world.zookeeper
        if self._read_at != zookeeper.zxid:
            places = [f"{QUEUE}/{n}" for n in queue_order(zookeeper.children(QUEUE))]
            nodes = [(place, zookeeper.get(place)) for place in places]
            self._places = [(place, n.ephemeral_owner) for place, n in nodes if n is not None]
            self._read_at = zookeeper.zxid
        return self._places

    def _places_of(self, session_id: int) -> list[str]:
        return [place for place, owner in self._queue() if owner == session_id]

    def _queue_up(self) -> bool:
        """Whoever has no place gets one: behind the others, with the next thing that it does."""
        for process in self._candidates():
            is_holder = process is self._holder and process.client.session_id == self._session_id
            if process.is_paused or is_holder or self._places_of(process.client.session_id):
                continue
            place = Create(f"{QUEUE}/{process.name}-__lock__", ephemeral=True, sequential=True)
            process.client.multi([*self._registration(process), place])
            return True
        return False

    def _registration(self, process: RegentProcess) -> list[Create]:
        """By what others find it, unless it is there; it goes with the session."""
        path = presence_node(QUEUE, process.client.session_id)
        is_there = self._world.zookeeper.get(path) is not None
        return [] if is_there else [Create(path, ephemeral=True)]

    def _follow_queue(self) -> bool:
        """A holder without a place learns so; the first in the queue learns that it is."""
        holder = self._holder
        if holder is not None and not self._places_of(self._session_id):
            self._holder = None
            if holder.is_alive and self._world.zookeeper.is_alive(self._session_id):
                self._world.trace.line("elector", "tells of its end", holder.name)
                holder.put(e.NotEligible())
            return True
        queue = self._queue()
        first = None if not queue else self._world.regent_of(queue[0][1])
        if first is None or first is holder or first not in self._candidates():
            return False
        self._elect(first)
        return True


def is_place(writes: Sequence[Operation]) -> bool:
    """Whether a transaction is that of a replica that queues up."""
    parents = (f"{QUEUE}/", f"{presence_path(QUEUE)}/")
    return all(isinstance(op, Create) and op.path.startswith(parents) for op in writes)

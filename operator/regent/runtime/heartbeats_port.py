"""What Regent needs of the heartbeats between its replicas, as a protocol."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from regent.model.replica import ReplicaPresence, SuspectedReplica


class HeartbeatsPort(Protocol):
    """Asks other replicas of Regent whether they live, and answers them. Its methods may be called
    from any thread; callbacks come in a thread of its own."""

    @property
    def instance(self) -> str:
        """By which others know this process, whatever its address is."""
        ...

    @property
    def port(self) -> int:
        """Where it answers."""
        ...

    @property
    def suspicions(self) -> Mapping[str, int]:
        """How often others were suspected, by reason."""
        ...

    def defect(self) -> str | None:
        """What has ended them for good, if that was an error."""
        ...

    def start(
        self,
        *,
        on_suspected: Callable[[Mapping[int, SuspectedReplica]], None],
        on_named: Callable[[int], None],
        is_ready: Callable[[], bool],
    ) -> None:
        """Begin.

        Args:
            on_suspected: Called with session -> suspected replica of all, when these or the unheard
                ones change, and again as long as it lasts.
            on_named: Called with the session of the replica that wants this process to take over.
            is_ready: Whether this process could take over now. Must answer at once.
        """
        ...

    def suspected(self) -> Mapping[int, SuspectedReplica]:
        """Session -> suspected replica, of all that are suspected now."""
        ...

    def unheard(self) -> Mapping[int, str]:
        """Session -> what of it, for people, of all that are asked in vain now and that nothing is
        held of: :attr:`regent.replicas.suspicion.Suspicion.is_unheard`."""
        ...

    def set_peers(self, peers: Mapping[int, ReplicaPresence]) -> None:
        """Ask these from now on, and no others: session -> whom."""
        ...

    def ready(self) -> frozenset[str]:
        """Instances that ask this process, and could take over now."""
        ...

    def name(self, instance: str) -> None:
        """Tell that one to take over."""
        ...

    def problems(self) -> Mapping[str, str | None]:
        """Other replica, for people -> why it does not answer, None if it does."""
        ...

    def leave(self) -> None:
        """Say that this process ends as it should: nobody suspects it from now on."""
        ...

    def close(self) -> None:
        """End. Others see that, and suspect it unless it was said before."""
        ...

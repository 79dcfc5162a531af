"""What this process remembers about a resource between reconciliations. Losing it is harmless."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, Generic, TypeVar

from regent.admin.commands import Accepted, Outcome, ResourceCommand
from regent.controller.view import ClusterView
from regent.kube.settings import KubeSettings
from regent.kube.work_queue import BACKOFF_MAX_S, backoff_s
from regent.reconcile.dispatch import is_transient, name_twins
from regent.reconcile.request import Attempt

_ATTEMPTS_MAX: Final = 8
"""Attempts kept per resource; a resource never has more than a few commands of interest."""

_HELD_FOR_GOOD_S: Final = 2 * BACKOFF_MAX_S
"""A finalizer that was there for so long was not taken off by who takes it off again and again."""

StatusT = TypeVar("StatusT")


@dataclass(frozen=True, slots=True)
class Outranked:
    """A status with a higher epoch than that of this process's term.

    Attributes:
        version: resourceVersion of its object.
        controller_epoch: Epoch of the term.
        since: Loop time at which it was first seen.
    """

    version: str
    controller_epoch: int
    since: float


@dataclass(slots=True, kw_only=True)
class ObjectMemory(Generic[StatusT]):
    """Memory of one resource of any kind.

    Attributes:
        uid: Of the object; another one means that everything else is void.
        generation: The generation last seen, ``seen_at`` the loop time at which it was first seen.
        is_significant: Whether a change of the status is more than a detail.
        written_at: Loop time of the last write of its status; None: not written yet.
        written: The status written last.
        contests: How often in a row it had to be written again, because somebody else had changed
            it.
        held_at: Loop time at which the finalizer was put on it; None: not by this process.
        holds_lost: How often in a row it had to be put on again, because somebody else had taken it
            off.
        outranked: The status that was left alone the last time; None: it was written.
        attempts: Commands sent, with their outcomes, as long as they keep from sending them again.
    """

    uid: str
    generation: int
    seen_at: float
    is_significant: Callable[[StatusT, StatusT], bool]
    written_at: float | None = None
    written: StatusT | None = None
    contests: int = 0
    held_at: float | None = None
    holds_lost: int = 0
    outranked: Outranked | None = None
    attempts: list[Attempt] = field(default_factory=list)

    def see(self, generation: int, *, at: float) -> None:
        """Compare with the resource's generation, and forget what has lost its meaning."""
        if generation != self.generation:
            self.generation = generation
            self.seen_at = at
            self.attempts = [attempt for attempt in self.attempts if self.outlives(attempt)]
        # A refused one is kept: whether it is refused again decides how long to wait.
        self.attempts = [
            attempt
            for attempt in self.attempts
            if attempt.retry_at > at or not isinstance(attempt.outcome, Accepted)
        ]

    def outlives(self, attempt: Attempt) -> bool:
        """Whether an attempt means the same after a change of the resource."""
        return False

    def note_written(self, status: StatusT, *, over: StatusT, at: float) -> None:
        """Remember that the status was written in the place of another one."""
        is_repeated = self._has_written(status) and self.is_significant(over, status)
        self.contests = self.contests + 1 if is_repeated else 0
        self.written, self.written_at = status, at

    def contest_pause_s(self, status: StatusT) -> float:
        """Seconds between two writes of a status that somebody else changes again and again."""
        if not self.contests or not self._has_written(status):
            return 0.0
        return backoff_s(self.contests, jitter=1.0)

    def note_held(self, *, at: float) -> None:
        """Remember that the finalizer was put on the resource."""
        is_repeated = self.held_at is not None and at - self.held_at < _HELD_FOR_GOOD_S
        self.holds_lost = self.holds_lost + 1 if is_repeated else 0
        self.held_at = at

    def note_released(self) -> None:
        """Remember that there need not be a finalizer any more."""
        self.held_at, self.holds_lost = None, 0

    def hold_pause_s(self, *, at: float) -> float:
        """Seconds to wait before the finalizer that somebody else takes off again and again is put
        on once more. The first time it is put back at once."""
        if self.held_at is None or not self.holds_lost:
            return 0.0
        return max(0.0, self.held_at + backoff_s(self.holds_lost, jitter=1.0) - at)

    def _has_written(self, status: StatusT) -> bool:
        return self.written is not None and not self.is_significant(self.written, status)

    def note_attempt(
        self,
        command: ResourceCommand,
        outcome: Outcome,
        *,
        view: ClusterView,
        at: float,
        settings: KubeSettings,
        jitter: Callable[[], float],
    ) -> None:
        """Remember an answer of the controller, so that the same is not asked again at once.

        Args:
            view: What the command was planned by.
        """
        previous = next((a for a in self.attempts if a.command == command), None)
        self.attempts = [a for a in self.attempts if a.command != command][-_ATTEMPTS_MAX + 1 :]
        count = 1
        if isinstance(outcome, Accepted):
            delay_s = settings.accepted_settle_s
        elif is_transient(outcome):
            count = 1 if previous is None else previous.count + 1
            delay_s = backoff_s(count, jitter=jitter())
        else:
            delay_s = settings.refused_retry_s
        self.attempts.append(
            Attempt(
                command=command,
                outcome=outcome,
                generation=self.generation,
                controller_epoch=view.controller_epoch,
                brokers=view.brokers,
                retry_at=at + delay_s,
                count=count,
                twins=name_twins(command, outcome, view),
            )
        )

    def forget_attempt(self, command: ResourceCommand) -> None:
        """The command may be sent again at once."""
        self.attempts = [a for a in self.attempts if a.command != command]

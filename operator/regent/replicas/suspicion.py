"""From what happens to the connection to another replica, and when, to a suspicion and its reason.

A pure reducer: each method takes what has happened and the time, in seconds of any clock that never
goes back.

That a connection was accepted proves nothing, as the kernel accepts for a process that is stopped;
nor does its end alone, as networks end connections, too. So its end is followed by another attempt.
A listener may still accept for a millisecond or two after its process was killed, so a refusal
counts once there were two.

Who was never heard is no suspect: it may be the way to it that is missing. It is *unheard* when it
was asked in vain as long as makes others frozen, or its port refuses: nothing is known of it, so
nobody has to wait for it, and nothing else follows.
"""

from __future__ import annotations

import enum
from typing import Final

import msgspec


class Reason(enum.StrEnum):
    """Why a replica is suspected."""

    DEAD = "dead"
    GONE = "gone"
    REPLACED = "replaced"
    FROZEN = "frozen"


EXPLANATIONS: Final = {
    Reason.DEAD: "its connection ended and its port refuses another one",
    Reason.GONE: "its connection ended and nobody answers at its address",
    Reason.REPLACED: "its connection ended and another process has its port",
    Reason.FROZEN: "it does not answer any more",
}


class SuspicionSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Times in seconds.

    Attributes:
        heartbeat_s: How often the other one is asked, and how often is looked.
        silence_s: So long without an answer, and it is frozen, or unheard.
        refused_s: From the first to the last of the refusals that make it dead, or unheard.
        unreached_s: So long nobody may answer attempts to connect until it is gone.
    """

    heartbeat_s: float = 0.2
    silence_s: float = 2.0
    refused_s: float = 0.01
    unreached_s: float = 0.1

    @property
    def own_pause_s(self) -> float:
        """A longer time to a look, from the one before or from an answer, is a pause of this
        process."""
        return self.heartbeat_s + self.silence_s / 4


class Suspicion:
    """What is held of one replica. It is suspected only once it was heard.

    Attributes:
        reason: Why it is suspected, or None. An answer ends a suspicion.
        is_unheard: Whether it is asked in vain, and was not heard before. An answer ends it.
    """

    def __init__(self, settings: SuspicionSettings) -> None:
        self._settings = settings
        self.reason: Reason | None = None
        self.is_unheard = False
        self._asked_at: float | None = None
        self._heard_at: float | None = None
        self._awake_at: float | None = None
        self._lost_at: float | None = None
        self._refused_since: float | None = None

    @property
    def is_in_doubt(self) -> bool:
        """Whether the next attempt to connect decides, so that it should come soon."""
        if self._heard_at is None:
            return self._refused_since is not None and not self.is_unheard
        return self._lost_at is not None and self.reason is None

    def asked(self, now: float) -> None:
        """An attempt to reach it begins."""
        if self._heard_at is None and self._asked_at is None:
            self._asked_at = self._awake_at = now

    def answered(self, now: float) -> None:
        """It has answered, and this process was not asleep."""
        self._heard_at = self._awake_at = now
        self._asked_at = self._lost_at = self._refused_since = self.reason = None
        self.is_unheard = False

    def left(self) -> None:
        """It has said that it ends: what happens to its connection now is as it should be."""
        self._asked_at = self._heard_at = None
        self._lost_at = self._refused_since = self.reason = None
        self.is_unheard = False

    def unknown(self) -> None:
        """Its address leads to others, too: nothing more is known of it until it answers again. A
        suspicion stays: who lives at the address now may have come in its place."""
        if self.reason is None and self._heard_at is not None:
            self.left()

    def lost(self, now: float) -> None:
        """Its connection has ended."""
        if self._heard_at is not None and self._lost_at is None:
            self._lost_at = now

    def refused(self, now: float) -> None:
        """Its port has refused a connection."""
        was_heard = self._heard_at is not None
        if was_heard and self._lost_at is None:
            return
        if self._refused_since is None:
            self._refused_since = now
        elif now - self._refused_since >= self._settings.refused_s:
            if was_heard:
                self._suspect(Reason.DEAD)
            else:
                self.is_unheard = True

    def unreached(self, now: float) -> None:
        """An attempt to connect has failed without an answer, or for want of a way."""
        self._refused_since = None
        if self._lost_at is not None and now - self._lost_at >= self._settings.unreached_s:
            self._suspect(Reason.GONE)

    def accepted(self) -> None:
        """A connection was accepted, by whomever."""
        self._refused_since = None

    def replaced(self) -> None:
        """Another process answers in its place."""
        if self._lost_at is not None:
            self._suspect(Reason.REPLACED)

    def looked(self, now: float) -> None:
        """Time has passed: is it silent for too long? Called every ``heartbeat_s``."""
        before, self._awake_at = self._awake_at, now
        if before is not None and now - before > self._settings.own_pause_s:
            self._forgive(now - before)
        silent_since = now - self._settings.silence_s
        if self._heard_at is not None:
            if self._heard_at <= silent_since:
                self._suspect(Reason.FROZEN)
        elif self._asked_at is not None and self._asked_at <= silent_since:
            self.is_unheard = True

    def _forgive(self, pause_s: float) -> None:
        """This process has slept: what came meanwhile is not read yet."""
        if self._asked_at is not None:
            self._asked_at += pause_s
        if self._heard_at is not None:
            self._heard_at += pause_s
        if self._lost_at is not None:
            self._lost_at += pause_s
        self._refused_since = None

    def _suspect(self, reason: Reason) -> None:
        """The first reason stays, unless the replica turns out to be dead."""
        if self.reason is None or reason is Reason.DEAD:
            self.reason = reason

"""Two Regents with the warm standby: the one that leads ends in one of three ways."""

from __future__ import annotations

import contextlib
import enum
import time
from collections.abc import Callable, Iterator
from typing import Any, ClassVar, Final

from benchmarks.arena import Arena
from benchmarks.benchmark import REGENT
from benchmarks.contenders import (
    REGENT_CONTROLLER_ID,
    Contender,
    LogLine,
    RegentController,
    regents_log,
)
from benchmarks.stub.server import LOOPBACK
from sandbox.process import ManagedProcess
from sandbox.regent_process import RegentProcess
from sandbox.waiting import wait_until

_SESSION_TIMEOUT_MS: Final = 30_000
"""Longer than a take-over takes: what is measured does not come from the end of a session."""


class Ending(enum.Enum):
    """What happens to the one that leads."""

    SIGKILL = "SIGKILL"
    SIGSTOP = "SIGSTOP"
    SIGTERM = "SIGTERM"

    def of(self, process: ManagedProcess) -> int:
        """Let it happen; when it began, in monotonic nanoseconds."""
        end: Callable[[], None] = {
            Ending.SIGKILL: process.kill,
            Ending.SIGSTOP: process.pause,
            Ending.SIGTERM: process.terminate,
        }[self]
        began_at = time.monotonic_ns()
        end()
        return began_at


class Replica(Contender):
    """One of two Regents on a cluster. It is started again after it was killed."""

    name = REGENT
    milestones: ClassVar = RegentController.milestones

    def __init__(self, zookeeper: str, controller_id: int, **settings: str) -> None:
        self.controller_id = controller_id
        self._regent = RegentProcess(
            zookeeper=zookeeper,
            name=f"regent-{controller_id}",
            settings={
                "controller_id": controller_id,
                "zookeeper_session_timeout_ms": _SESSION_TIMEOUT_MS,
                "warm_standby": True,
                "replica_host": LOOPBACK,
                **settings,
            },
        )

    @property
    def process(self) -> ManagedProcess:
        return self._regent.process

    def _start(self) -> None:
        self._regent.launch()

    def log(self) -> Iterator[LogLine]:
        return regents_log(self.process)

    def close(self) -> None:
        self._regent.close()

    def wait_until_active(self, *, timeout_s: float) -> None:
        """Wait until it is the controller."""
        self._regent.wait_until_active(timeout_s=timeout_s)

    def wait_until_prepared(self, *, timeout_s: float) -> None:
        """Wait until it has all that a take-over needs, and hears another one."""

        def is_prepared() -> bool:
            status = self._regent.status() or {}
            cache: dict[str, Any] = status.get("warmStandby") or {}
            others: dict[str, Any] = (status.get("replicas") or {}).get("others") or {}
            return (
                cache.get("phase") == "current"
                and cache.get("isPrepared") is True
                and None in others.values()
            )

        wait_until(
            is_prepared,
            timeout_s=timeout_s,
            describe=f"{self._regent.name} to be prepared",
            watch=[self.process],
            logs=[self.process.log_path],
        )


class Pair:
    """One that leads and one that is prepared to; they change places.

    Each is started anew before it stands by, so none has taken over before: the pause that
    suspicions make after one another never counts.

    Attributes:
        active: The one that leads.
        standby: The other one.
    """

    def __init__(self, arena: Arena, active: Replica, standby: Replica) -> None:
        self._arena = arena
        self.active = active
        self.standby = standby

    def start(self) -> None:
        """Have one lead, and the other one prepared."""
        timeout_s = self._arena.options.timeout_s
        self.active.activate()
        self.active.wait_until_active(timeout_s=timeout_s)
        self.standby.activate()
        self.standby.wait_until_prepared(timeout_s=timeout_s)

    def change_places(self) -> None:
        """The standby leads: the other one is started anew, and prepared."""
        former, self.active = self.active, self.standby
        self.standby = former
        former.process.kill()
        former.activate()
        former.wait_until_prepared(timeout_s=self._arena.options.timeout_s)


@contextlib.contextmanager
def pair_in(arena: Arena) -> Iterator[Pair]:
    """A pair that runs until the end of the block, and leaves no controller."""
    with contextlib.ExitStack() as stack:
        first, second = (
            Replica(arena.connect_string, REGENT_CONTROLLER_ID + number) for number in range(2)
        )
        for replica in (first, second):
            stack.callback(replica.close)
        pair = Pair(arena, first, second)
        pair.start()
        yield pair
        for replica in (pair.standby, pair.active):
            replica.process.stop()
        arena.session.await_end(
            lambda: arena.session.controller() is None,
            what="the replicas' /controller is still there",
            timeout_s=arena.options.timeout_s,
        )

"""Plays a story once, and from each of its effects on once for everything that can befall there.

What comes before an effect is the same for all that befalls at it. So it is not played again: the
process forks there, and the child goes on with the disturbance. A child ends when its story does,
and says what it has found; the parent waits for it, and goes on undisturbed.
"""

from __future__ import annotations

import gc
import os
import traceback
from collections.abc import Callable, Iterable
from typing import Any, Final, NoReturn

from regent.zk_data import effects as zk_effects
from tests.simulation.disturbances import Disturbance
from tests.simulation.driver import RegentProcess
from tests.simulation.playing import Cut, Scenario, play_with
from tests.simulation.trace import InvariantViolatedError

_HELD: Final = b"held"


def play_every_cut(
    scenario: Scenario,
    disturbances: Callable[[int, zk_effects.Effect[Any]], Iterable[Disturbance]],
    *,
    rivals: bool,
) -> list[str]:
    """Play a story with each disturbance of each effect; what did not hold, with its cut."""
    failures: list[str] = []
    report_to: int | None = None

    def disturb(
        _: RegentProcess, number: int, effect: zk_effects.Effect[Any]
    ) -> Disturbance | None:
        nonlocal report_to
        if report_to is not None:
            return None
        for disturbance in disturbances(number, effect):
            report, report_to = os.pipe()
            child = os.fork()
            if not child:
                os.close(report)
                return disturbance
            os.close(report_to)
            report_to = None
            verdict = _read(report)
            os.waitpid(child, 0)
            if verdict != _HELD:
                cut = Cut(number, disturbance)
                failures.append(f"{cut} {effect}: {verdict.decode() or 'the process died'}")
        return None

    # What exists already is not touched by the collections of the children, and so stays shared.
    gc.collect()
    gc.freeze()
    try:
        play_with(scenario, disturb, rivals=rivals)
    except BaseException as error:
        if report_to is not None:
            _end(report_to, _describe(error))
        raise
    finally:
        gc.unfreeze()
    if report_to is not None:
        _end(report_to, _HELD)
    return failures


def _read(descriptor: int) -> bytes:
    with os.fdopen(descriptor, "rb") as stream:
        return stream.read()


def _describe(error: BaseException) -> bytes:
    if isinstance(error, InvariantViolatedError):
        return str(error).encode()
    return "".join(traceback.format_exception(error)).encode()


def _end(report_to: int, verdict: bytes) -> NoReturn:
    """End a child, without what a process does at its end: that is its parent's."""
    with os.fdopen(report_to, "wb") as stream:
        stream.write(verdict)
    os._exit(0)

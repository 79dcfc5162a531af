"""The loop of the main thread: signals are handled by it, and end the process at no time."""

from __future__ import annotations

import signal
import subprocess
import sys
from typing import Final

import pytest

SIGNALS: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT)

_PROGRAM: Final = """
import asyncio, os, signal, threading
from regent.services.main_loop import MainLoop

number = signal.Signals[{name!r}]

async def main():
    handled = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(number, handled.set)
    {send}
    await handled.wait()

with asyncio.Runner(loop_factory=MainLoop) as runner:
    runner.run(main())
os.kill(os.getpid(), number)
print("ended by itself")
"""


def run(name: str, *, send: str) -> subprocess.CompletedProcess[str]:
    program = _PROGRAM.format(name=name, send=send)
    return subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False
    )


@pytest.mark.parametrize("number", SIGNALS, ids=lambda number: number.name)
def test_late_signal_does_not_end_the_process(number: signal.Signals) -> None:
    ended = run(number.name, send="os.kill(os.getpid(), number)")
    assert (ended.returncode, ended.stdout) == (0, "ended by itself\n"), ended.stderr


def test_a_signal_that_another_thread_gets_is_handled_at_once() -> None:
    """The main thread waits for nothing but the signal: the loop has to be woken."""
    ended = run(
        "SIGTERM",
        send="threading.Thread(target=lambda: signal.raise_signal(number)).start()",
    )
    assert (ended.returncode, ended.stdout) == (0, "ended by itself\n"), ended.stderr


def test_a_signal_whose_handler_was_removed_is_ignored() -> None:
    ended = run(
        "SIGTERM",
        send="loop = asyncio.get_running_loop(); loop.remove_signal_handler(number);"
        " os.kill(os.getpid(), number); loop.add_signal_handler(number, handled.set);"
        " os.kill(os.getpid(), number)",
    )
    assert (ended.returncode, ended.stdout) == (0, "ended by itself\n"), ended.stderr

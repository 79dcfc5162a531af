"""The guard itself: it remembers, forgets, and is replaced when somebody kills it."""

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from sandbox.guard import Guard


@pytest.fixture
def guard() -> Iterator[Guard]:
    guard = Guard()
    yield guard
    guard.close()


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(["sleep", "600"], start_new_session=True) as process:
        yield process
        process.kill()


def test_what_was_forgotten_is_left_alone(
    guard: Guard, sleeper: subprocess.Popen[bytes], tmp_path: Path
) -> None:
    guard.add_process(sleeper.pid)
    guard.add_directory(tmp_path)
    guard.forget_process(sleeper.pid)
    guard.forget_directory(tmp_path)
    guard.close()
    assert sleeper.poll() is None
    assert tmp_path.exists()


def test_a_killed_guard_is_replaced_and_its_successor_knows_everything(
    guard: Guard, sleeper: subprocess.Popen[bytes], tmp_path: Path
) -> None:
    guard.add_process(sleeper.pid)
    assert guard.pid is not None
    os.kill(guard.pid, signal.SIGKILL)
    os.waitid(os.P_PID, guard.pid, os.WEXITED | os.WNOWAIT)
    directory = tmp_path / "state\nwith a newline"
    (directory / "inside").mkdir(parents=True)
    guard.add_directory(directory)
    guard.close()
    assert sleeper.wait(timeout=60) == -signal.SIGKILL
    assert not directory.exists()


def test_an_interrupt_of_the_whole_terminal_does_not_end_it(
    guard: Guard, sleeper: subprocess.Popen[bytes]
) -> None:
    guard.add_process(sleeper.pid)
    assert guard.pid is not None
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        os.kill(guard.pid, number)
    guard.close()
    assert sleeper.wait(timeout=60) == -signal.SIGKILL

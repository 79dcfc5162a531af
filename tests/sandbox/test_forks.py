"""A fork behaves as the program that ``python -m MODULE`` starts."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from sandbox.forks import ForkServer
from sandbox.process import ManagedProcess, run_forked
from tests.support.waiting import DEADLINE_S, wait_for

PROGRAM = """\
import os, signal, sys
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
print(sys.argv[1:], os.environ["COLOUR"], os.getcwd(), os.getsid(0) == os.getpid(), flush=True)
if sys.argv[1] == "wait":
    signal.sigwait([signal.SIGTERM])
    sys.exit(3)
"""

Make = Callable[..., ManagedProcess]


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ForkServer]:
    (tmp_path / "program.py").write_text(PROGRAM)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    server = ForkServer("program", ["json"])
    yield server
    server.close()


@pytest.fixture
def make(server: ForkServer, tmp_path: Path) -> Iterator[Make]:
    made: list[ManagedProcess] = []

    def make(*arguments: str) -> ManagedProcess:
        process = ManagedProcess(
            "program",
            [sys.executable, "-m", "program", *arguments],
            log_path=tmp_path / f"{len(made)}.log",
            environment={"COLOUR": f"{len(made)}"},
            directory=tmp_path,
            fork_server=server,
        )
        made.append(process)
        process.start()
        return process

    yield make
    for process in made:
        process.kill()


def wait_for_exit(process: ManagedProcess) -> int:
    return wait_for(
        lambda: process.exit_code, "the program to end", until=lambda code: code is not None
    )


def test_a_fork_has_arguments_environment_directory_and_log_of_its_own(
    make: Make, tmp_path: Path
) -> None:
    first, second = make("a", "b"), make("c")
    assert [wait_for_exit(process) for process in (first, second)] == [0, 0]
    assert first.log_of_this_run() == f"['a', 'b'] 0 {tmp_path} True\n"
    assert second.log_of_this_run() == f"['c'] 1 {tmp_path} True\n"


def test_the_exit_code_of_a_fork_is_seen(make: Make) -> None:
    stopped, killed = make("wait"), make("wait")
    for process in (stopped, killed):
        wait_for(process.log_of_this_run, "the program to run")
    assert stopped.is_running
    stopped.stop()
    killed.kill()
    assert (stopped.exit_code, killed.exit_code) == (3, -signal.SIGKILL)


def test_a_program_that_fails_leaves_its_traceback_in_the_log(make: Make) -> None:
    failed = make()
    assert wait_for_exit(failed) == 1
    assert "IndexError" in failed.log_of_this_run()


def test_a_command_is_run_to_its_end(server: ForkServer) -> None:
    done = run_forked(server, ["a"], timeout_s=DEADLINE_S, environment={"COLOUR": "red"})
    assert (done.stdout, done.stderr, done.exit_code) == (f"['a'] red {Path.cwd()} True\n", "", 0)
    failed = run_forked(server, [], timeout_s=DEADLINE_S, environment={"COLOUR": "red"})
    assert failed.exit_code == 1
    assert "IndexError" in failed.stderr

"""Managed processes, and the promise that none outlives its owner."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from sandbox.guard import kill_group, start_time_ticks
from sandbox.process import ManagedProcess, run_guarded
from sandbox.waiting import wait_until

REPOSITORY = Path(__file__).parents[2]

COUNT = "import time\nwhile True:\n    print('tick', flush=True)\n    time.sleep(0.01)\n"
IGNORE_SIGTERM = (
    "import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
    "print('deaf', flush=True)\ntime.sleep(600)\n"
)
WITH_A_CHILD = (
    "import subprocess, time\nchild = subprocess.Popen(['sleep', '600'])\n"
    "print('child', child.pid, flush=True)\ntime.sleep(600)\n"
)

Start = Callable[[str], ManagedProcess]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts Python programs as managed processes."""
    processes = []

    def start_program(source: str) -> ManagedProcess:
        process = ManagedProcess(
            "program",
            [sys.executable, "-c", source],
            log_path=tmp_path / "program.log",
            environment={"PYTHONUNBUFFERED": "1"},
        )
        process.start()
        processes.append(process)
        return process

    yield start_program
    for process in processes:
        process.kill()


def wait_for_log(process: ManagedProcess, text: str) -> None:
    wait_until(
        lambda: text in process.log_of_this_run(),
        describe=f"{text!r} in the log",
        watch=[process],
    )


def child_of(process: ManagedProcess) -> int:
    """Process id of the child. An interpreter without buffers writes a line in pieces."""
    wait_for_log(process, "\n")
    return int(process.log_of_this_run().split()[1])


def is_alive(pid: int) -> bool:
    """The process exists and is not just waiting to be reaped by somebody."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"


def wait_until_gone(pid: int) -> None:
    wait_until(lambda: not is_alive(pid), describe=f"process {pid} to be gone")


def test_stop_ends_it_and_restart_appends_to_the_log(start: Start) -> None:
    process = start("print('hello'); import time; time.sleep(600)")
    wait_for_log(process, "hello")
    first = process.pid
    process.restart()
    assert process.pid != first
    wait_for_log(process, "hello")
    assert process.log_tail().count("hello") == 2
    assert process.log_of_this_run().count("hello") == 1
    process.stop()
    assert not process.is_running
    assert process.exit_code == -signal.SIGTERM
    process.stop()  # nothing to do


def test_a_program_deaf_to_sigterm_is_killed_in_bounded_time(start: Start) -> None:
    process = start(IGNORE_SIGTERM)
    wait_for_log(process, "deaf")
    process.stop(timeout_s=0.2)
    assert process.exit_code == -signal.SIGKILL


def test_a_paused_program_stands_still_and_goes_on(start: Start) -> None:
    process = start(COUNT)
    wait_for_log(process, "tick")
    process.pause()
    assert process.is_paused
    size = process.log_path.stat().st_size
    time.sleep(0.2)
    assert process.log_path.stat().st_size == size
    process.resume()
    wait_until(
        lambda: process.log_path.stat().st_size > size,
        describe="the program to go on",
    )


def test_a_paused_program_can_be_stopped(start: Start) -> None:
    process = start(COUNT)
    process.pause()
    process.stop()
    assert process.exit_code == -signal.SIGTERM


def test_kill_takes_the_children_along(start: Start) -> None:
    process = start(WITH_A_CHILD)
    child = child_of(process)
    process.kill()
    wait_until_gone(child)


def test_children_of_a_program_that_died_by_itself_are_ended_too(start: Start) -> None:
    process = start(WITH_A_CHILD)
    child = child_of(process)
    os.kill(process.pid, signal.SIGKILL)
    wait_until(lambda: not process.is_running, describe="its death to be noticed")
    wait_until_gone(child)


def test_run_guarded_kills_what_takes_too_long_and_tells_what_it_said() -> None:
    # a shell says it long before the time is over; an interpreter of Python may need a second
    program = "echo half way; sleep 600"
    with pytest.raises(TimeoutError, match=r"(?s)did not end within 1 s.*half way"):
        run_guarded(["/bin/sh", "-c", program], timeout_s=1)


def test_a_process_id_that_belongs_to_somebody_else_now_is_not_killed() -> None:
    with subprocess.Popen(["sleep", "600"], start_new_session=True) as innocent:
        started = start_time_ticks(innocent.pid)
        assert started is not None
        kill_group(innocent.pid, started - 1)
        time.sleep(0.1)
        assert innocent.poll() is None
        kill_group(innocent.pid, started)
        assert innocent.wait(timeout=60) == -signal.SIGKILL


OWNER = """
import sys, threading, time
from pathlib import Path
from sandbox.process import ManagedProcess
from sandbox.state import StateDirectory

state = StateDirectory("owner-test")
processes = []

def start(number):
    # on a thread that ends at once, as executor threads may
    process = ManagedProcess(
        f"p{number}", [sys.executable, "-c", PROGRAM], log_path=state.path / f"{number}.log"
    )
    process.start()
    processes.append(process)

for number in range(3):
    thread = threading.Thread(target=start, args=(number,))
    thread.start()
    thread.join()
while not all("\\n" in process.log_of_this_run() for process in processes):
    time.sleep(0.01)
processes[0].pause()
children = [process.log_of_this_run().split()[1] for process in processes]
print(state.path, *(process.pid for process in processes), *children, flush=True)
time.sleep(LIFETIME_S)
"""


@pytest.mark.parametrize("end", ["SIGKILL", "SIGTERM", "normal exit"])
def test_nothing_outlives_the_owner(end: str) -> None:
    source = OWNER.replace("PROGRAM", repr(WITH_A_CHILD))
    source = source.replace("LIFETIME_S", "0" if end == "normal exit" else "600")
    with subprocess.Popen(
        [sys.executable, "-c", source], cwd=REPOSITORY, stdout=subprocess.PIPE, text=True
    ) as owner:
        assert owner.stdout is not None
        state, *pids = owner.stdout.readline().split()
        assert len(pids) == 6
        if end != "normal exit":
            assert all(is_alive(int(pid)) for pid in pids)
            assert Path(state).is_dir()
            owner.send_signal(signal.Signals[end])
        owner.wait(timeout=60)
    for pid in pids:
        wait_until_gone(int(pid))
    wait_until(lambda: not Path(state).exists(), describe="the state to be removed")


FORKING_OWNER = """
import os, sys, time
from pathlib import Path
from sandbox.process import ManagedProcess

process = ManagedProcess("p", ["sleep", "600"], log_path=Path(sys.argv[1]))
process.start()
forked = os.fork()
if forked == 0:
    assert process.exit_code == 0  # not our child: we know nothing and do nothing
    process.kill()
    os.write(1, b"forked\\n")  # in one piece, whatever the interpreter's buffers
    time.sleep(600)
time.sleep(0.1)
os.write(1, f"{process.pid} {forked}\\n".encode())
time.sleep(600)
"""


def test_a_forked_copy_of_the_owner_neither_kills_nor_keeps_alive(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", FORKING_OWNER, str(tmp_path / "log")],
        cwd=REPOSITORY,
        stdout=subprocess.PIPE,
        text=True,
    ) as owner:
        assert owner.stdout is not None
        lines = sorted(owner.stdout.readline().split() for _ in range(2))
        (pid, forked), word = (int(part) for part in lines[0]), lines[1]
        assert word == ["forked"]
        assert is_alive(pid)
        owner.kill()
        owner.wait(timeout=60)
    wait_until_gone(pid)
    assert is_alive(forked)
    os.kill(forked, signal.SIGKILL)


FAILING_TEST = """
import sys
from sandbox.process import ManagedProcess
from sandbox.waiting import wait_until

def test_a_program_does_not_do_what_is_awaited(tmp_path):
    log = tmp_path / "program.log"
    program = ManagedProcess("some-regent", [sys.executable, "-c", PROGRAM], log_path=log)
    program.start()
    wait_until(lambda: "ready" in program.log_of_this_run(), timeout_s=60, describe="its log")
    assert False, "in vain"

PROGRAM = "import time; print('ready, and why not more', flush=True); time.sleep(600)"
"""


def test_the_report_of_a_failed_test_has_the_logs_of_what_runs(tmp_path: Path) -> None:
    (tmp_path / "test_failing.py").write_text(FAILING_TEST)
    plugins = ("program_logs", "early_failures", "soak", "stalls")
    options = [argument for plugin in plugins for argument in ("-p", f"tests.support.{plugin}")]
    outcome = run_guarded(
        [sys.executable, "-m", "pytest", "-c", "/dev/null", "-n", "1", *options, tmp_path],
        environment={"PYTHONPATH": str(REPOSITORY)},
        timeout_s=120,
    )
    when_it_happens, _, at_the_end = outcome.stdout.partition("= FAILURES =")
    assert "repeat: .venv/bin/pytest test_failing.py::test_a_program" in when_it_happens
    for report in (when_it_happens, at_the_end):
        assert "in vain" in report
        assert "log of some-regent" in report
        assert "\nready, and why not more" in report

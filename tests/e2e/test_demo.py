"""The demo: what a newcomer runs first works, and leaves nothing behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from sandbox import wait_until

pytestmark = [pytest.mark.integration, pytest.mark.slow]

ROOT = Path(__file__).resolve().parents[2]
_TIMEOUT_S = 600.0
_MARKER = "REGENT_TEST_OF_THE_DEMO"


class Demo:
    """A run of the demo. Every process that it starts inherits a mark in its environment."""

    def __init__(self, directory: Path, *arguments: str, kubeconfig: Path | None = None) -> None:
        self.state = directory / "state"
        self._output = directory / "output.txt"
        self._mark = f"{_MARKER}={uuid.uuid4()}"
        name, _, value = self._mark.partition("=")
        environment = {
            **os.environ,
            name: value,
            "REGENT_SANDBOX_STATE": str(self.state),
            "PYTHONUNBUFFERED": "1",
        }
        environment.pop("KUBECONFIG", None)
        if kubeconfig is not None:
            environment["KUBECONFIG"] = str(kubeconfig)
        with self._output.open("wb") as output:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "sandbox.demo", *arguments],
                cwd=ROOT,
                env=environment,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    @property
    def output(self) -> str:
        return self._output.read_text(errors="replace")

    def processes(self) -> list[str]:
        """Command lines of all processes with the mark, whatever has become of their parents."""
        found = []
        for environ in Path("/proc").glob("[0-9]*/environ"):
            try:
                if self._mark.encode() in environ.read_bytes().split(b"\0"):
                    command = environ.with_name("cmdline").read_bytes()
                    found.append(command.replace(b"\0", b" ").decode(errors="replace")[:120])
            except OSError:  # it has ended
                continue
        return found

    def wait(self) -> int:
        """The exit status."""
        return self.process.wait(timeout=_TIMEOUT_S)

    def kill(self) -> None:
        if self.process.poll() is None:
            self.process.kill()  # its guard ends the rest
            self.process.wait()


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Demo]:
    demo = Demo(tmp_path)
    yield demo
    demo.kill()


def test_the_demo_makes_a_round_trip_and_ctrl_c_leaves_nothing_behind(running: Demo) -> None:
    wait_until(
        lambda: "running until Ctrl-C" in running.output or running.process.poll() is not None,
        describe="the demo to run",
    )
    assert running.process.poll() is None, running.output
    assert "1000 messages consumed" in running.output
    # itself and its guard, etcd, kube-apiserver, ZooKeeper, three brokers, Regent
    assert len(running.processes()) >= 9, running.processes()
    began = time.monotonic()
    os.killpg(running.process.pid, signal.SIGINT)  # what a terminal does
    assert running.wait() == 0, running.output
    print(f"Ctrl-C took {time.monotonic() - began:.1f} s")
    assert running.output.endswith("[sandbox] stopped\n")
    assert "Traceback" not in running.output
    assert_nothing_is_left(running)


def assert_nothing_is_left(demo: Demo) -> None:
    # the guard ends by itself once its owner has
    wait_until(
        demo.processes,
        until=lambda left: not left,
        describe="every process of the demo to be gone",
    )
    assert list(demo.state.iterdir()) == []

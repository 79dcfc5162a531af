"""Regent itself as a process of the sandbox: `python -m regent run ...`, as people run it, or a
fork of a process that has imported its modules already."""

import json
import os
import sys
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sandbox.forks import ForkServer
from sandbox.ports import LOOPBACK
from sandbox.process import ManagedProcess, Outcome, run_forked
from sandbox.server import Server
from sandbox.waiting import wait_until

START_TIMEOUT_S = 180.0
STOP_TIMEOUT_S = 60.0  # what the chart gives a pod; on a busy machine it takes a while
_HTTP_TIMEOUT_S = 30.0
_COMMAND_TIMEOUT_S = 180.0
_ROOT = Path(__file__).resolve().parent.parent

_SOURCES = os.pathsep.join(str(_ROOT / folder) for folder in ("operator", "spark_tasks"))

_forks = ForkServer(
    "regent",
    ["regent.app", "regent.cli.run", "regent.kube.side", "regent.servers.eviction_endpoint"],
)


def run_regent(*arguments: str | Path, **environment: str) -> Outcome:
    """Run ``regent ARGUMENTS`` to its end, as a fork.

    Raises:
        WaitTimeoutError: it did not end in time, and was killed.
    """
    return run_forked(
        _forks,
        arguments,
        timeout_s=_COMMAND_TIMEOUT_S,
        environment={"PYTHONPATH": _SOURCES, **environment},
    )


class RegentProcess(Server):
    """One Regent.

    `settings` are options of `regent run` by name (`{"log_level": "debug"}`); a value True is a
    flag. Without a kubeconfig it is the controller alone. `forked` starts it as a fork, which saves
    seconds of a processor; the command itself is run where the start is what a test looks at.
    """

    def __init__(
        self,
        *,
        zookeeper: str,
        kubeconfig: Path | str | None = None,
        settings: Mapping[str, str | int | bool] | None = None,
        name: str = "regent",
        state: Path | None = None,
        keep_state: bool = False,
        forked: bool = False,
    ) -> None:
        super().__init__(name, state=state, keep_state=keep_state)
        options: dict[str, str | int | bool] = {
            "zookeeper": zookeeper,
            "http_port": self.port,
            "zookeeper_session_timeout_ms": 6_000,
            **({} if kubeconfig else {"without_kubernetes": True}),
            **(settings or {}),
        }
        arguments = [
            text
            for option, value in options.items()
            for text in _option(option.replace("_", "-"), value)
        ]
        environment = {"PYTHONPATH": _SOURCES}
        if kubeconfig is not None:
            environment["KUBECONFIG"] = str(kubeconfig)
        self.process = ManagedProcess(
            name,
            [sys.executable, "-m", "regent", "run", *arguments],
            log_path=self.state_path / "regent.log",
            environment=environment,
            directory=self.state_path,
            stop_timeout_s=STOP_TIMEOUT_S,
            fork_server=_forks if forked else None,
        )

    def launch(self) -> None:
        """Start the process without waiting for anything."""
        self.process.start()

    def wait_until_ready(self) -> None:
        """Wait until it could be the controller (`/readyz`)."""
        wait_until(
            lambda: self.get("/readyz") is not None,
            timeout_s=START_TIMEOUT_S,
            describe=f"{self.name} to be ready",
            watch=[self.process],
        )

    def wait_until_active(self, *, timeout_s: float = START_TIMEOUT_S) -> dict[str, Any]:
        """Wait until it is the controller; returns its status."""
        return wait_until(
            self.status,
            until=lambda status: bool(status and status["isActive"]),
            timeout_s=timeout_s,
            describe=f"{self.name} to be the controller",
            watch=[self.process],
        )

    def status(self) -> dict[str, Any] | None:
        """What `/status` says, None if it does not answer."""
        text = self.get("/status")
        return None if text is None else json.loads(text)

    def metrics(self) -> str:
        """What `/metrics` says, empty if it does not answer."""
        return self.get("/metrics") or ""

    def log_entries(self) -> list[dict[str, Any]]:
        """What the current (or last) run has logged, but for a line that is being written."""
        lines = self.process.log_of_this_run().splitlines(keepends=True)
        return [json.loads(line) for line in lines if line[0] == "{" and line.endswith("\n")]

    def get(self, path: str) -> str | None:
        """The body of a successful answer of its HTTP endpoint, else None."""
        url = f"http://{LOOPBACK}:{self.port}{path}"
        try:
            with urllib.request.urlopen(url, timeout=_HTTP_TIMEOUT_S) as answer:
                body: bytes = answer.read()
                return body.decode()
        except (OSError, urllib.error.HTTPError):
            return None


def _option(name: str, value: str | int | bool) -> list[str]:
    if value is True:
        return [f"--{name}"]
    if value is False:
        return [f"--no-{name}"]
    return [f"--{name}", str(value)]

"""Regent is stopped while ZooKeeper does not answer: it ends soon, and says what it left behind.
And it is stopped by the end of the terminal that it was started in."""

from __future__ import annotations

import itertools
import os
import signal
from collections.abc import Iterator
from typing import Any

import pytest

from sandbox import ZooKeeper, wait_until
from sandbox.regent_process import RegentProcess

pytestmark = [pytest.mark.integration, pytest.mark.slow]

SESSION_TIMEOUT_MS = 60_000
IGNORED = "Signal ignored: SIGTERM ends Regent"
_numbers = itertools.count(1)

GRACE_S = 30.0
"""What Kubernetes gives a pod by default; the chart gives twice as much."""


@pytest.fixture(scope="module")
def own_zookeeper() -> Iterator[ZooKeeper]:
    """A ZooKeeper that tests freeze."""
    with ZooKeeper() as server:
        yield server


@pytest.fixture
def _hang_up_is_not_ignored() -> Iterator[None]:
    """As it would be by processes that a test run under nohup starts."""
    former = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, former)


@pytest.fixture
def session_timeout_ms(request: pytest.FixtureRequest) -> int:
    """Session timeout of the Regent; parametrize it for another one."""
    return int(getattr(request, "param", SESSION_TIMEOUT_MS))


@pytest.fixture
def process(
    own_zookeeper: ZooKeeper, _hang_up_is_not_ignored: None, session_timeout_ms: int
) -> Iterator[RegentProcess]:
    """The controller of a cluster of the test's own, without brokers."""
    started = RegentProcess(
        zookeeper=f"{own_zookeeper.connect_string}/stopping-{next(_numbers)}",
        settings={
            "missing_cluster": "create",
            "zookeeper_session_timeout_ms": session_timeout_ms,
        },
    )
    started.process.stop_timeout_s = GRACE_S
    try:
        started.start()
        started.wait_until_active()
        yield started
    finally:
        own_zookeeper.resume()
        started.close()


def said(process: RegentProcess, message: str) -> list[dict[str, Any]]:
    return [entry for entry in process.log_entries() if entry["message"] == message]


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGQUIT], ids=lambda number: number.name)
def test_a_signal_that_ends_other_programs_at_once_is_an_orderly_end_and_others_end_nothing(
    process: RegentProcess, number: signal.Signals
) -> None:
    ignored = ("SIGUSR1", "SIGUSR2", "SIGALRM", "SIGVTALRM", "SIGPROF")
    for name in ignored * 2:
        os.kill(process.process.pid, getattr(signal, name))
    wait_until(
        lambda: {entry["signal_name"] for entry in said(process, IGNORED)},
        until=lambda names: names == set(ignored),
        describe="the signals to be ignored",
        watch=[process],
    )
    os.kill(process.process.pid, number)
    wait_until(
        lambda: not process.process.is_running, timeout_s=GRACE_S, describe="Regent to have ended"
    )
    assert process.process.exit_code == 0
    assert said(process, "Controller released")
    assert len(said(process, IGNORED)) == len(ignored)


def test_a_frozen_zookeeper_does_not_delay_the_end(
    own_zookeeper: ZooKeeper, process: RegentProcess
) -> None:
    own_zookeeper.pause()
    process.stop()
    assert process.process.exit_code == 0
    (warning,) = said(process, "The controller is not handed over: ZooKeeper does not answer")
    assert warning["silent_s"] > 0


@pytest.mark.parametrize("session_timeout_ms", [12_000], indirect=True)
def test_a_reconnection_in_vain_does_not_delay_the_end(
    own_zookeeper: ZooKeeper, process: RegentProcess
) -> None:
    own_zookeeper.pause()
    wait_until(
        lambda: process.get("/readyz") is None,
        describe="Regent to have lost its connection",
        watch=[process],
    )
    process.stop()
    assert process.process.exit_code == 0
    assert said(process, "The controller is not handed over: ZooKeeper does not answer")

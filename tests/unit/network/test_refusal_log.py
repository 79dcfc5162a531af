"""Who was refused lately: bounded, logged once in a while, forgotten after some minutes."""

from __future__ import annotations

import logging

import pytest

from regent.network.refusal_log import RefusalLog
from regent.protocol.serving import Refusal
from tests.support.clock import Clock


@pytest.fixture
def clock() -> Clock:
    return Clock()


def refusal(user: str = "alice", *, address: str = "10.0.0.1") -> Refusal:
    return Refusal(
        kind="authentication",
        principal=f"User:{user}",
        address=address,
        listener="CLIENTS",
        reason="wrong password",
        remedy="set it",
    )


def test_repeated_refusal_is_logged_once(clock: Clock, caplog: pytest.LogCaptureFixture) -> None:
    log = RefusalLog(clock)
    for clock.now_s in (1_000.0, 1_001.0, 1_059.0, 1_060.0):
        log.add(refusal())
    first, second = (record.__dict__ for record in caplog.records)
    assert (first["message"], first["levelno"]) == ("peer refused", logging.WARNING)
    assert (first["principal"], first["not_logged_before"]) == ("User:alice", 0)
    assert second["not_logged_before"] == 2


def test_another_peer_is_logged_at_once(clock: Clock, caplog: pytest.LogCaptureFixture) -> None:
    log = RefusalLog(clock)
    for user, address in (("alice", "10.0.0.1"), ("bob", "10.0.0.1"), ("alice", "10.0.0.2")):
        log.add(refusal(user, address=address))
    assert len(caplog.records) == 3
    assert [each["principal"] for each in log.recent()] == ["User:alice", "User:bob", "User:alice"]


def test_a_refusal_is_shown_for_some_minutes_after_the_last_time(clock: Clock) -> None:
    log = RefusalLog(clock)
    log.add(refusal())
    clock.now_s += 500.0
    log.add(refusal())
    clock.now_s += 600.0
    assert len(log.recent()) == 1
    clock.now_s += 1.0
    assert log.recent() == []


def test_log_and_memory_are_bounded(clock: Clock, caplog: pytest.LogCaptureFixture) -> None:
    log = RefusalLog(clock)
    for number in range(1_000):
        log.add(refusal(f"user-{number}"))
    assert len(caplog.records) == 20
    assert len(log.recent()) == 50
    assert log.recent()[0]["principal"] == "User:user-999"
    clock.now_s += 60.0
    log.add(refusal())
    assert caplog.records[-1].__dict__["not_logged_before"] == 980


def test_what_is_not_known_is_left_out(clock: Clock) -> None:
    log = RefusalLog(clock)
    log.add(
        Refusal(
            kind="TLS",
            principal=None,
            address="::1",
            listener="C",
            reason="expired",
            remedy="renew",
        )
    )
    (shown,) = log.recent()
    assert "principal" not in shown

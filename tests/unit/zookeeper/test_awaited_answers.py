"""Answers that a thread waits for without a bound."""

from __future__ import annotations

import threading
import time

import pytest
from kazoo.exceptions import ConnectionLoss
from kazoo.handlers.threading import KazooTimeoutError, SequentialThreadingHandler

from regent.zookeeper import awaited_answers
from regent.zookeeper.awaited_answers import PATIENCE_S, AnswerLostError, AwaitedAnswer


class Servers:
    """Their answer to a heartbeat that is asked now; None: they answer none."""

    def __init__(self) -> None:
        self.heartbeat_of: float | None = None
        self.looked = threading.Event()

    def has_answered_since(self, moment: float) -> bool:
        self.looked.set()
        return self.heartbeat_of is not None and self.heartbeat_of > moment

    def answer_later_requests(self) -> None:
        self.heartbeat_of = time.monotonic() + PATIENCE_S + 1


@pytest.fixture
def servers(monkeypatch: pytest.MonkeyPatch) -> Servers:
    monkeypatch.setattr(awaited_answers, "LOOK_INTERVAL_S", 0.01)
    return Servers()


@pytest.fixture
def answer(servers: Servers) -> AwaitedAnswer:
    return AwaitedAnswer(
        SequentialThreadingHandler(), has_answered_since=servers.has_answered_since
    )


def test_overtaken_answer_is_lost(servers: Servers, answer: AwaitedAnswer) -> None:
    servers.answer_later_requests()
    with pytest.raises(AnswerLostError, match="later ones have come"):
        answer.get()


def test_recipes_ask_again_as_after_a_lost_connection() -> None:
    assert issubclass(AnswerLostError, ConnectionLoss)


def test_servers_that_are_slow_are_waited_for(servers: Servers, answer: AwaitedAnswer) -> None:
    def answer_late() -> None:
        servers.looked.wait(60)
        answer.set("late")

    threading.Thread(target=answer_late).start()
    assert answer.get() == "late"


def test_an_answer_that_has_come_meanwhile_counts(
    servers: Servers, answer: AwaitedAnswer, monkeypatch: pytest.MonkeyPatch
) -> None:
    servers.answer_later_requests()
    is_first = True

    def wait(_: float | None = None) -> bool:
        nonlocal is_first
        if is_first:
            is_first = False
            answer.set("just now")
            return False
        return True

    monkeypatch.setattr(answer, "wait", wait)
    assert answer.get() == "just now"


def test_a_bound_of_the_caller_counts_as_ever(servers: Servers, answer: AwaitedAnswer) -> None:
    servers.answer_later_requests()
    with pytest.raises(KazooTimeoutError):
        answer.get(timeout=0.01)
    with pytest.raises(KazooTimeoutError):
        answer.get(block=False)

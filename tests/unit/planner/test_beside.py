"""Computations on threads of their own."""

from __future__ import annotations

import resource
import threading

import pytest

from regent_rebalance.beside import Beside, has_room_beside


def test_a_computation_goes_on_while_others_do() -> None:
    may_end = threading.Event()
    with Beside(lambda: (may_end.wait(60), threading.current_thread())) as beside:
        may_end.set()
        ended, thread = beside.result()
        assert ended
        assert thread is not threading.current_thread()
        assert beside.result() == (ended, thread)


def test_it_has_ended_when_the_block_is_left_by_an_error() -> None:
    may_end, ended = threading.Event(), threading.Event()

    def compute() -> None:
        may_end.wait(60)
        ended.set()

    def fail() -> None:
        with Beside(compute):
            threading.Timer(0.05, may_end.set).start()
            raise ValueError("the caller has failed")

    with pytest.raises(ValueError, match="the caller has failed"):
        fail()
    assert ended.is_set()


def test_one_that_is_done_at_once_needs_no_thread() -> None:
    beside = Beside(threading.current_thread, at_once=True)
    assert beside.result() is threading.current_thread()


def test_what_it_raises_is_raised_where_its_result_is_wanted() -> None:
    def fail() -> None:
        raise MemoryError("no room")

    beside = Beside(fail)
    for _ in range(2):
        with pytest.raises(MemoryError, match="no room"):
            beside.result()


def test_without_a_thread_it_is_done_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    assert Beside(threading.current_thread).result() is threading.current_thread()


def test_what_the_process_may_have_decides_whether_there_is_room(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    limits = {resource.RLIMIT_AS: resource.RLIM_INFINITY}

    def limited_to(data_bytes: int) -> None:
        limits[resource.RLIMIT_DATA] = data_bytes

    monkeypatch.setattr(resource, "getrlimit", lambda kind: (limits[kind],) * 2)
    limited_to(resource.RLIM_INFINITY)
    assert has_room_beside(10**9)
    limited_to(512 << 20)
    assert has_room_beside(600_000)
    assert not has_room_beside(1_000_000)

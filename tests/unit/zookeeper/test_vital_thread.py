"""The end of a thread that the process needs."""

from __future__ import annotations

import threading

import pytest

from regent.zookeeper.vital_thread import VitalThread, defect_of


def test_error_is_kept_and_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    reported: list[object] = []
    monkeypatch.setattr(threading, "excepthook", lambda ended: reported.append(ended.exc_value))

    def fail() -> None:
        raise ValueError("broken")

    thread = VitalThread(target=fail, name="heart")
    assert defect_of(None) is defect_of(thread) is None
    thread.start()
    thread.join()
    assert defect_of(thread) == "the thread heart was ended by an error: ValueError('broken')"
    assert reported == [thread.failure]


def test_one_that_ends_by_itself_is_no_defect() -> None:
    thread = VitalThread(target=int)
    thread.start()
    thread.join()
    assert defect_of(thread) is None

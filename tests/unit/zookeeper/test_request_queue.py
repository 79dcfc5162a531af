"""Requests that are taken back while kazoo's connection thread sends them."""

from __future__ import annotations

from typing import Any

import pytest

from regent.zookeeper.kazoo_client import OneSessionClient
from regent.zookeeper.request_queue import RequestQueue
from tests.unit.zookeeper.test_kazoo_client import SETTINGS, Recorder

FIRST, SECOND = (object(), object()), (object(), object())


def queue() -> RequestQueue:
    made = RequestQueue()
    made.extend([FIRST, SECOND])
    return made


def test_what_is_being_sent_stays() -> None:
    requests = queue()
    assert requests[0] == FIRST
    with pytest.raises(ValueError, match="being sent"):
        requests.remove(FIRST)
    requests.remove(SECOND)
    assert requests.popleft() == FIRST


def test_what_waits_is_taken_back() -> None:
    requests = queue()
    requests.remove(FIRST)
    assert list(requests) == [SECOND]
    with pytest.raises(ValueError, match="not in deque"):
        requests.remove(FIRST)


def test_a_request_whose_sending_failed_goes_with_the_connection() -> None:
    requests = queue()
    assert requests[0] == FIRST
    assert [requests.popleft(), requests.popleft()] == [FIRST, SECOND]
    with pytest.raises(IndexError):
        requests.popleft()


def test_a_client_that_begins_anew_has_such_a_queue_again() -> None:
    client: Any = OneSessionClient(SETTINGS, Recorder())
    client._reset()
    assert isinstance(client._queue, RequestQueue)

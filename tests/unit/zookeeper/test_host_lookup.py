"""ZooKeeper's servers are found though name servers do not answer."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterable, Iterator
from concurrent.futures import Future
from typing import Any

import pytest

from regent.zookeeper import generation
from regent.zookeeper.host_lookup import HostLookup
from regent.zookeeper.session import ZooKeeperSession
from regent.zookeeper.settings import ZooKeeperSettings
from tests.support.waiting import wait_for

ONE, TWO = ("zk-1.test", 2181), ("zk-2.test", 2182)
PATIENCE_S = 7.0


class Names:
    """What names resolve to: an address, an error, or nothing for as long as the test lasts, or
    until an address comes late."""

    def __init__(self) -> None:
        self.known: dict[str, str | Exception | None] = {}
        self.asked: list[str] = []
        self.over = threading.Event()
        self.late = ""

    def look_up(self, host: str, port: int, **_: Any) -> list[Any]:
        self.asked.append(host)
        found = self.known[host]
        if found is None:
            self.over.wait(60)
            found = self.late or socket.gaierror(socket.EAI_AGAIN, "no answer")
        if isinstance(found, Exception):
            raise found
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (found, port))]

    def wait(self, lookups: Iterable[Future[Any]], timeout: float) -> None:
        """Time is out when all are asked and all answers have come, but those that never do."""
        assert timeout == PATIENCE_S
        silent = [host for host, found in self.known.items() if found is None]
        begun = list(lookups)
        wait_for(
            lambda: (
                sum(each.done() for each in begun) >= len(begun) - len(silent)
                and set(silent) <= set(self.asked)
            ),
            "the answers",
        )


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> Iterator[Names]:
    names = Names()
    monkeypatch.setattr(socket, "getaddrinfo", names.look_up)
    monkeypatch.setattr("concurrent.futures.wait", names.wait)
    yield names
    names.over.set()


class Lookup:
    def __init__(self) -> None:
        self._lookup = HostLookup(patience_s=PATIENCE_S)
        self.failures: list[str] = []

    def addresses(self) -> list[tuple[str, str, int]]:
        self.failures = []
        return self._lookup.addresses((ONE, TWO), on_failure=self.failures.append)


def test_a_name_that_is_not_answered_keeps_no_other_server_from_being_found(names: Names) -> None:
    names.known = {"zk-1.test": None, "zk-2.test": "10.0.0.2"}
    lookup = Lookup()
    assert lookup.addresses() == [("zk-2.test", "10.0.0.2", 2182)]
    assert lookup.failures == [
        "the host 'zk-1.test' cannot be resolved: name servers have not answered yet"
    ]


def test_a_lookup_that_runs_is_not_begun_again(names: Names) -> None:
    names.known = {"zk-1.test": None, "zk-2.test": "10.0.0.2"}
    lookup = Lookup()
    for _ in range(3):
        lookup.addresses()
    assert names.asked.count("zk-1.test") == 1
    assert names.asked.count("zk-2.test") == 3


@pytest.mark.parametrize("silence", [None, socket.gaierror(socket.EAI_AGAIN, "SERVFAIL")])
def test_unanswered_server_stays_where_it_was(names: Names, silence: Exception | None) -> None:
    names.known = {"zk-1.test": "10.0.0.1", "zk-2.test": "10.0.0.2"}
    lookup = Lookup()
    lookup.addresses()
    names.known = {"zk-1.test": silence, "zk-2.test": "10.0.0.3"}
    assert lookup.addresses() == [
        ("zk-1.test", "10.0.0.1", 2181),
        ("zk-2.test", "10.0.0.3", 2182),
    ]
    assert lookup.failures == []


def test_an_answer_that_comes_after_a_look_counts_at_the_next_one(names: Names) -> None:
    """Name servers of which the first is dead take longer for each name than any look waits."""
    names.known = {"zk-1.test": None, "zk-2.test": "10.0.0.2"}
    lookup = Lookup()
    assert lookup.addresses() == [("zk-2.test", "10.0.0.2", 2182)]
    names.late = "10.0.0.1"
    names.over.set()
    wait_for(
        lambda: not any(each.name == "zookeeper-lookup" for each in threading.enumerate()),
        "the lookups end",
    )
    names.over.clear()
    assert ("zk-1.test", "10.0.0.1", 2181) in lookup.addresses()


def test_a_new_session_knows_where_servers_were(monkeypatch: pytest.MonkeyPatch) -> None:
    lookups: list[HostLookup | None] = []

    class Client:
        def __init__(
            self, _: ZooKeeperSettings, __: object, lookup: HostLookup | None = None
        ) -> None:
            lookups.append(lookup)

        def start_async(self) -> None:
            raise RuntimeError("there is no thread")

        def dispose(self) -> None:
            """There is none."""

    monkeypatch.setattr(generation, "OneSessionClient", Client)
    session = ZooKeeperSession(ZooKeeperSettings(hosts=("zk-1.test:2181",)))
    loop = asyncio.new_event_loop()
    for _ in range(2):
        with pytest.raises(RuntimeError):
            session._live_through(loop)
    loop.close()
    first, second = lookups
    assert first is second is not None


def test_a_server_that_has_no_name_any_more_is_nowhere(names: Names) -> None:
    names.known = {"zk-1.test": "10.0.0.1", "zk-2.test": "10.0.0.2"}
    lookup = Lookup()
    lookup.addresses()
    names.known["zk-1.test"] = socket.gaierror(socket.EAI_NONAME, "not known")
    assert lookup.addresses() == [("zk-2.test", "10.0.0.2", 2182)]
    assert "not known" in lookup.failures[0]


def test_lookup_without_threads(names: Names, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    names.known = {"zk-1.test": "10.0.0.1", "zk-2.test": socket.gaierror(-2, "not known")}
    monkeypatch.setattr(threading.Thread, "start", refuse)
    assert Lookup().addresses() == [("zk-1.test", "10.0.0.1", 2181)]

"""Who counts as a broker: how hosts are looked up."""

from __future__ import annotations

import asyncio
import socket
from collections import Counter
from collections.abc import Collection, Mapping

import pytest

from regent.controller.view import ClusterView
from regent.endpoint import broker_trust
from regent.endpoint.broker_trust import BrokerTrust, TrustedAsBrokers, resolve_host
from regent.model.cluster import Broker, EndPoint
from regent.protocol.serving import Refusal, Refuse, ignore_refusal
from tests.support.endpoint import peer_of
from tests.support.waiting import DEADLINE_S

HOSTS = {"a": ["10.0.0.1"], "b": ["10.0.0.2"]}
BROKERS = {
    i: Broker(i, epoch=i, endpoints=(EndPoint("PLAINTEXT", "PLAINTEXT", host, 9092),))
    for i, host in enumerate(HOSTS, start=1)
}


class SlowNames:
    """Answers when the test says so."""

    def __init__(self) -> None:
        self.asked: Counter[str] = Counter()
        self.was_asked = asyncio.Event()
        self.answer = asyncio.Event()

    async def resolve(self, host: str) -> Collection[str]:
        self.asked[host] += 1
        self.was_asked.set()
        await self.answer.wait()
        return HOSTS[host]


VIEW = ClusterView(is_active=True, brokers=BROKERS)


class Names:
    """Answers at once. A host without addresses is never answered, one that is missing fails for
    now."""

    def __init__(self, addresses: Mapping[str, Collection[str]]) -> None:
        self.addresses = addresses

    async def resolve(self, host: str) -> Collection[str]:
        if host not in self.addresses:
            raise socket.gaierror(socket.EAI_AGAIN, "name servers do not answer")
        if not self.addresses[host]:
            await asyncio.Event().wait()
        return self.addresses[host]


def trust(
    names: SlowNames | Names,
    *,
    view: ClusterView = VIEW,
    refuse: Refuse = ignore_refusal,
) -> BrokerTrust:
    return BrokerTrust(
        trusted=TrustedAsBrokers.REGISTERED_BROKERS,
        super_users=(),
        view=lambda: view,
        resolve=names.resolve,
        refuse=refuse,
    )


async def test_a_host_is_looked_up_once_however_many_ask_meanwhile() -> None:
    """Lookups share a few threads with the connections to brokers."""
    names = SlowNames()
    judge = trust(names)
    strangers = [
        asyncio.create_task(judge.is_broker(peer_of(address="10.9.9.9"))) for _ in range(100)
    ]
    broker = asyncio.create_task(judge.is_broker(peer_of(address="10.0.0.2")))
    await names.was_asked.wait()
    assert names.asked == {"a": 1, "b": 1}
    names.answer.set()
    assert await broker
    assert not any(await asyncio.gather(*strangers))
    assert names.asked == {"a": 1, "b": 1}


async def test_who_stops_waiting_for_a_lookup_does_not_end_it_for_others() -> None:
    names = SlowNames()
    judge = trust(names)
    first = asyncio.create_task(judge.is_broker(peer_of(address="10.0.0.1")))
    other = asyncio.create_task(judge.is_broker(peer_of(address="10.0.0.1")))
    await names.was_asked.wait()
    first.cancel()
    await asyncio.gather(first, return_exceptions=True)
    names.answer.set()
    assert await other


async def test_a_broker_does_not_wait_for_the_names_of_others() -> None:
    """A name that is not answered takes half a minute, in which no ISR could change."""
    judge = trust(Names({**HOSTS, "b": []}))
    async with asyncio.timeout(DEADLINE_S):
        assert await judge.is_broker(peer_of(address="10.0.0.1"))


async def test_broker_stays_trusted_without_name_servers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever is not known has all names looked up again."""
    monkeypatch.setattr(broker_trust, "_FRESH_S", 0.0)
    names = Names(HOSTS)
    judge = trust(names)
    assert await judge.is_broker(peer_of(address="10.0.0.1"))
    names.addresses = {}
    assert await judge.is_broker(peer_of(address="10.9.9.9")) is False
    assert await judge.is_broker(peer_of(address="10.0.0.1"))
    names.addresses = {"a": ["10.0.0.3"], "b": ["10.0.0.2"]}
    assert await judge.is_broker(peer_of(address="10.0.0.3"))
    assert await judge.is_broker(peer_of(address="10.0.0.1")) is False


@pytest.mark.parametrize("host", ["kafka..example.com", "x" * 64 + ".example.com"])
async def test_what_is_no_name_of_a_host_has_no_addresses(host: str) -> None:
    """Brokers register whatever they are set up with."""
    assert await resolve_host(host) == ()


@pytest.mark.parametrize(
    "view",
    [ClusterView(), ClusterView(is_active=True)],
    ids=["not the controller", "about to become it"],
)
async def test_process_without_brokers_reports_no_refusal(view: ClusterView) -> None:
    """A broker asks who was the controller a moment ago, or has just been elected."""
    refused: list[Refusal] = []
    judge = trust(SlowNames(), view=view, refuse=refused.append)
    assert await judge.is_broker(peer_of(address="10.0.0.1")) is None
    assert refused == []


async def test_a_stranger_is_reported_as_refused() -> None:
    names, refused = SlowNames(), list[Refusal]()
    names.answer.set()
    assert await trust(names, refuse=refused.append).is_broker(peer_of(address="10.9.9.9")) is False
    assert [each.address for each in refused] == ["10.9.9.9"]


async def test_that_name_servers_do_not_answer_is_said_with_the_refusal() -> None:
    refused: list[Refusal] = []
    judge = trust(Names({"a": HOSTS["a"]}), refuse=refused.append)
    assert await judge.is_broker(peer_of(address="10.0.0.2")) is False
    (refusal,) = refused
    assert "name servers do not answer for the broker's host b" in refusal.reason

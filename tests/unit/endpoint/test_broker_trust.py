"""Who counts as a broker: how hosts are looked up."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Collection

import pytest

from regent.controller.view import ClusterView
from regent.endpoint.broker_trust import BrokerTrust, TrustedAsBrokers
from regent.model.cluster import Broker, EndPoint
from regent.protocol.serving import ANONYMOUS, Peer, Refusal, Refuse, ignore_refusal

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


def peer(address: str) -> Peer:
    return Peer(
        address=address,
        port=1,
        principal=ANONYMOUS,
        listener="PLAINTEXT",
        security_protocol="PLAINTEXT",
    )


VIEW = ClusterView(is_active=True, brokers=BROKERS)


def trust(
    names: SlowNames,
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
    strangers = [asyncio.create_task(judge.is_broker(peer("10.9.9.9"))) for _ in range(100)]
    broker = asyncio.create_task(judge.is_broker(peer("10.0.0.2")))
    await names.was_asked.wait()
    assert names.asked == {"a": 1, "b": 1}
    names.answer.set()
    assert await broker
    assert not any(await asyncio.gather(*strangers))
    assert names.asked == {"a": 1, "b": 1}


async def test_who_stops_waiting_for_a_lookup_does_not_end_it_for_others() -> None:
    names = SlowNames()
    judge = trust(names)
    first = asyncio.create_task(judge.is_broker(peer("10.0.0.1")))
    other = asyncio.create_task(judge.is_broker(peer("10.0.0.1")))
    await names.was_asked.wait()
    first.cancel()
    await asyncio.gather(first, return_exceptions=True)
    names.answer.set()
    assert await other


@pytest.mark.parametrize(
    "view",
    [ClusterView(), ClusterView(is_active=True)],
    ids=["not the controller", "about to become it"],
)
async def test_nobody_is_reported_as_refused_by_a_process_that_knows_no_brokers(
    view: ClusterView,
) -> None:
    """A broker asks who was the controller a moment ago, or has just been elected."""
    refused: list[Refusal] = []
    judge = trust(SlowNames(), view=view, refuse=refused.append)
    assert await judge.is_broker(peer("10.0.0.1")) is None
    assert refused == []


async def test_a_stranger_is_reported_as_refused() -> None:
    names, refused = SlowNames(), list[Refusal]()
    names.answer.set()
    assert await trust(names, refuse=refused.append).is_broker(peer("10.9.9.9")) is False
    assert [each.address for each in refused] == ["10.9.9.9"]

"""Requests are passed on to the listener of a broker that the client means."""

from __future__ import annotations

import msgspec
import pytest

from regent.network.server_statistics import CloseReason
from regent.protocol.serving import UpstreamBroker
from regent.sockets.listening import listening_socket
from tests.support.kafka_client import connected
from tests.support.raw_broker import RawBroker, raw_brokers
from tests.unit.network.kafka_servers import closed_for
from tests.unit.network.passing import Passing, frame_of, one_broker


def two_listeners(broker: RawBroker, *names: str) -> UpstreamBroker:
    upstream = broker.as_upstream()
    (endpoint,) = upstream.broker.endpoints
    endpoints = tuple(msgspec.structs.replace(endpoint, listener=name) for name in names)
    changed = msgspec.structs.replace(upstream.broker, endpoints=endpoints)
    return upstream._replace(broker=changed)


@pytest.mark.parametrize(
    ("listeners", "passed_on"), [((), False), (("B",), True), (("B", "C"), True), (("C",), False)]
)
async def test_ambiguous_listener_needs_name(listeners: tuple[str, ...], passed_on: bool) -> None:
    """Brokers answer with addresses of the listener that they are asked on."""
    async with one_broker(listeners=listeners) as (passed, broker, client):
        passed.listed[:] = [two_listeners(broker, "A", "B")]
        problem = passed.server.problem()  # before any client fails
        client.send_frame(frame_of(3, 1, 1))
        if passed_on:
            assert problem is None
            assert await client.frame()
        else:
            named = ", ".join(listeners) or "A, B"
            assert f"listeners {named} " in str(problem) or f"listener {named} " in str(problem)
            assert "endpoint_listener" in str(problem)
            await client.closed()
            await closed_for(passed.server, CloseReason.NOT_PASSED_ON)


@pytest.mark.parametrize(
    ("listeners", "further", "is_further", "expected"),
    [
        ((), ("B",), True, "B"),
        ((), ("B",), False, "A"),
        (("A",), ("B",), True, "B"),
        (("A", "B"), ("B",), False, "A"),
        ((), ("A", "B"), False, None),
        ((), ("C",), True, None),
    ],
)
async def test_port_of_a_listener_leads_to_that_listener(
    listeners: tuple[str, ...], further: tuple[str, ...], is_further: bool, expected: str | None
) -> None:
    """The brokers have A and B: each is another raw broker here."""
    async with raw_brokers((3, 9), (3, 9)) as brokers:
        passed = Passing(brokers, listeners=listeners, further_listeners=further)
        endpoints = [broker.as_upstream().broker.endpoints[0] for broker in brokers]
        upstream = brokers[0].as_upstream()
        both = tuple(
            msgspec.structs.replace(endpoint, listener=name)
            for endpoint, name in zip(endpoints, "AB", strict=True)
        )
        changed = msgspec.structs.replace(upstream.broker, endpoints=both)
        passed.listed[:] = [upstream._replace(broker=changed)]
        sockets = {name: listening_socket("127.0.0.1", 0, setting="endpoint") for name in further}
        port_of = {name: each.getsockname()[1] for name, each in sockets.items()}
        async with passed.serving(further_listening=sockets) as server:
            is_ambiguous = "B" not in further  # at the port of all other listeners
            assert (server.problem() is not None) is is_ambiguous
            port = port_of[further[-1]] if is_further else server.port
            async with connected(port) as client:
                client.send_frame(frame_of(3, 1, 1))
                if expected is None:
                    await client.closed()
                    await closed_for(server, CloseReason.NOT_PASSED_ON)
                else:
                    assert await client.frame()
                    used = [name for name, broker in zip("AB", brokers, strict=True) if broker.open]
                    assert used == [expected]

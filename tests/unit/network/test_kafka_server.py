"""The server over real sockets: what it answers, in which order, and when it closes."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import struct
import threading
from collections.abc import AsyncIterator, Mapping
from typing import Any

import pytest
from kio.schema.errors import ErrorCode

from regent.model.errors import ConfigurationError
from regent.network.kafka_server import KafkaServer
from regent.network.server_settings import ServerSettings
from regent.network.server_statistics import CloseReason
from regent.protocol.api_versions_answer import FeatureRange, Features
from regent.protocol.framing import RequestHeader
from regent.protocol.served_apis import (
    ALTER_PARTITION,
    API_VERSIONS,
    CONTROLLED_SHUTDOWN,
    SASL_AUTHENTICATE,
    SASL_HANDSHAKE,
    Api,
)
from regent.protocol.server_codec import Request, ServerCodec
from regent.protocol.serving import Close, Peer, Throttled
from sandbox.waiting import DEADLINE_S
from tests.support.kafka_client import KafkaClient, connected
from tests.support.served_requests import make
from tests.support.waiting import until
from tests.unit.network.kafka_servers import (
    NONE_LEFT,
    Controller,
    at,
    closed_for,
    limited,
    served,
    serving,
)


@pytest.fixture
async def server(controller: Controller) -> AsyncIterator[KafkaServer]:
    async with serving(controller) as server:
        yield server


@pytest.mark.parametrize("version", CONTROLLED_SHUTDOWN.requests)
async def test_dispatch_answers(version: int, client: KafkaClient, controller: Controller) -> None:
    answer = await client.ask(CONTROLLED_SHUTDOWN, version, {"brokerId": 3})
    assert answer == make(CONTROLLED_SHUTDOWN.responses[version], NONE_LEFT)
    (peer,) = controller.peers
    assert (peer.address, peer.principal) == ("127.0.0.1", "User:ANONYMOUS")
    assert (peer.listener, peer.security_protocol) == ("CONTROLLER", "PLAINTEXT")


@pytest.mark.parametrize("version", API_VERSIONS.requests)
async def test_api_versions_lists_what_is_served(version: int, client: KafkaClient) -> None:
    fields = {"clientSoftwareName": "a", "clientSoftwareVersion": "1"} if version >= 3 else {}
    answer = await client.ask(API_VERSIONS, version, fields)
    listed = {each.api_key: (each.min_version, each.max_version) for each in answer.api_keys}
    served = {7: (0, 3), 17: (0, 1), 18: (0, 4), 36: (0, 2), 56: (0, 3)}
    assert listed == {0: (0, 9), **served}  # 0, Produce: clients want to see it


async def test_unknown_api_versions_is_answered_in_version_0(client: KafkaClient) -> None:
    client.send_frame(struct.pack(">hhi", 18, 77, 5) + b"of a time to come")
    answer = await client.answer(API_VERSIONS, 0, 5)
    assert answer.error_code is ErrorCode.unsupported_version
    assert [(each.api_key, each.max_version) for each in answer.api_keys] == [(18, 4)]
    assert (await client.ask(API_VERSIONS, 0, {})).error_code is ErrorCode.none


async def test_badly_named_software_is_refused(client: KafkaClient) -> None:
    software = {"clientSoftwareName": "a b", "clientSoftwareVersion": "1"}
    answer = await client.ask(API_VERSIONS, 3, software)
    assert answer.error_code is ErrorCode.invalid_request
    assert answer.api_keys == ()


async def test_api_versions_has_the_features_of_the_moment(controller: Controller) -> None:
    features = Features((FeatureRange("f", 1, 9),), (FeatureRange("f", 2, 3),), 12)
    async with served(controller, features=lambda: features) as (_, client):
        software = {"clientSoftwareName": "a", "clientSoftwareVersion": "1"}
        answer = await client.ask(API_VERSIONS, 3, software)
    assert answer.finalized_features_epoch == 12
    assert [each.max_version for each in answer.supported_features] == [9]
    assert [each.max_version_level for each in answer.finalized_features] == [3]


async def test_sasl_where_there_is_none_is_refused_as_by_kafka(client: KafkaClient) -> None:
    handshake = await client.ask(SASL_HANDSHAKE, 1, {"mechanism": "PLAIN"})
    assert handshake.error_code is ErrorCode.illegal_sasl_state
    authenticate = await client.ask(SASL_AUTHENTICATE, 2, {"authBytes": ""})
    assert authenticate.error_code is ErrorCode.illegal_sasl_state
    text = "SaslAuthenticate request received after successful authentication"
    assert authenticate.error_message == text


async def test_answers_keep_the_order(client: KafkaClient, controller: Controller) -> None:
    controller.may_answer.clear()
    sent = [client.send(CONTROLLED_SHUTDOWN, 3, {"brokerId": each}) for each in range(50)]
    await until(lambda: controller.in_progress == 1)
    controller.may_answer.set()
    for correlation_id in sent:
        await client.answer(CONTROLLED_SHUTDOWN, 3, correlation_id)
    assert controller.brokers == list(range(50))
    assert controller.most_in_progress == 1


async def test_a_client_that_has_to_wait_is_answered_at_once_and_not_read_meanwhile(
    server: KafkaServer, client: KafkaClient, controller: Controller
) -> None:
    entity = make(CONTROLLED_SHUTDOWN.responses[3], NONE_LEFT)
    controller.answers[1] = Throttled(entity, 3_600.0)
    sent = [client.send(CONTROLLED_SHUTDOWN, 3, {"brokerId": each}) for each in (1, 2)]
    await client.answer(CONTROLLED_SHUTDOWN, 3, sent[0])
    async with connected(server.port) as other:  # of the same address
        await other.ask(CONTROLLED_SHUTDOWN, 3, {"brokerId": 3})
    assert controller.brokers == [1, 3]
    await server.stop()
    await client.closed()


async def test_delayed_client_is_served_later(client: KafkaClient, controller: Controller) -> None:
    entity = make(CONTROLLED_SHUTDOWN.responses[3], NONE_LEFT)
    controller.answers[1] = Throttled(entity, 0.01)
    sent = [client.send(CONTROLLED_SHUTDOWN, 3, {"brokerId": each}) for each in (1, 2)]
    for correlation_id in sent:
        await client.answer(CONTROLLED_SHUTDOWN, 3, correlation_id)
    assert controller.brokers == [1, 2]


async def test_a_request_may_come_byte_by_byte_and_another_at_once(client: KafkaClient) -> None:
    frame = struct.pack(">hhii", 7, 0, 9, 1)
    for byte in struct.pack(">i", len(frame)) + frame:
        client.writer.write(bytes((byte,)))
        await client.writer.drain()
    assert await client.answer(CONTROLLED_SHUTDOWN, 0, 9)


async def test_connections_are_independent(server: KafkaServer, controller: Controller) -> None:
    controller.may_answer.clear()
    async with connected(server.port) as one, connected(server.port) as other:
        one.send(CONTROLLED_SHUTDOWN, 1, {"brokerId": 1})
        other.send(CONTROLLED_SHUTDOWN, 1, {"brokerId": 2})
        await until(lambda: controller.in_progress == 2)
        assert server.statistics.requests_in_progress == 2
        assert server.statistics.connections == 2
    await until(lambda: controller.in_progress == 0)


async def test_lost_peer_ends_its_request(server: KafkaServer, controller: Controller) -> None:
    controller.may_answer.clear()
    async with connected(server.port) as client:
        client.send(CONTROLLED_SHUTDOWN, 1, {"brokerId": 1})
        await until(lambda: controller.in_progress == 1)
    await until(lambda: controller.in_progress == 0)
    await until(at(server, connections=0, requests_in_progress=0, buffered_bytes=0))


@pytest.mark.parametrize(
    ("sent", "reason"),
    [
        (struct.pack(">ihhi", 8, 56, 77, 1), CloseReason.UNSUPPORTED),
        (struct.pack(">ihhi", 8, 1000, 0, 1), CloseReason.UNSUPPORTED),
        (struct.pack(">ihhi", 8, 7, 0, 1), CloseReason.MALFORMED),
        (struct.pack(">i", 0), CloseReason.MALFORMED),
        (struct.pack(">i", -1), CloseReason.FRAME_SIZE),
        (struct.pack(">i", 2**31 - 1), CloseReason.FRAME_SIZE),
        (b"GET / HTTP/1.1\r\n\r\n", CloseReason.FRAME_SIZE),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", CloseReason.FRAME_SIZE),
    ],
)
async def test_nonsense_closes_the_connection_and_is_counted(
    sent: bytes, reason: CloseReason, client: KafkaClient, server: KafkaServer
) -> None:
    client.writer.write(sent)
    await client.closed()
    await closed_for(server, reason)
    assert at(server, connections=0)()


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (Close.CLOSE, CloseReason.ANSWERED_BY_CLOSE),
        (RuntimeError("a defect"), CloseReason.FAILED),
        (make(CONTROLLED_SHUTDOWN.responses[1], NONE_LEFT), CloseReason.FAILED),
        ("no entity", CloseReason.FAILED),
    ],
    ids=repr,
)
async def test_what_cannot_be_answered_closes_its_connection_only(
    answer: Any, reason: CloseReason, server: KafkaServer, controller: Controller
) -> None:
    controller.answers[1] = answer
    async with connected(server.port) as one, connected(server.port) as other:
        one.send(CONTROLLED_SHUTDOWN, 3, {"brokerId": 1})
        await one.closed()
        await closed_for(server, reason)
        assert await other.ask(CONTROLLED_SHUTDOWN, 3, {"brokerId": 2})


async def test_an_answer_of_a_cancelled_dispatcher_is_dropped() -> None:
    started = asyncio.Event()

    async def stubborn(request: Request, _: Peer) -> Any:
        started.set()
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.Event().wait()
        return make(CONTROLLED_SHUTDOWN.responses[1], NONE_LEFT)

    async with serving(stubborn) as server:
        async with connected(server.port) as client:
            client.send(CONTROLLED_SHUTDOWN, 1, {"brokerId": 1})
            await started.wait()
        await until(at(server, connections=0, requests_in_progress=0, buffered_bytes=0))
        await asyncio.wait_for(server.stop(), DEADLINE_S)


async def test_bad_peers_logged_once(server: KafkaServer, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        for _ in range(20):
            async with connected(server.port) as client:
                client.writer.write(bytes(4))
                await client.closed()
    await closed_for(server, CloseReason.MALFORMED, 20)
    assert [record.message for record in caplog.records] == ["connection closed"]


class _Codec(ServerCodec):
    """Knows in which threads answers are encoded."""

    def __init__(self, apis: Mapping[int, Api]) -> None:
        super().__init__(apis)
        self.threads: list[threading.Thread] = []

    def encode(self, header: RequestHeader, entity: Any) -> bytes:
        self.threads.append(threading.current_thread())
        return super().encode(header, entity)


async def test_what_is_large_is_encoded_outside_of_the_loop(
    server: KafkaServer, controller: Controller, client: KafkaClient
) -> None:
    """The answer to a large request, which has an error for each thing that the request names and
    is read back before it is sent; and a large answer to a small request."""
    server.codec = codec = _Codec(server.codec.apis)
    controller.answers[1] = make(
        ALTER_PARTITION.responses[0], {"throttleTimeMs": 0, "errorCode": 0, "topics": []}
    )
    remaining = [{"topicName": "t", "partitionIndex": p} for p in range(2_000)]
    controller.answers[2] = make(
        CONTROLLED_SHUTDOWN.responses[1], {"errorCode": 0, "remainingPartitions": remaining}
    )
    for count in (1, 200):
        topics = [{"topicName": "t" * 200, "partitions": []}] * count
        answer = await client.ask(
            ALTER_PARTITION, 0, {"brokerId": 1, "brokerEpoch": 1, "topics": topics}
        )
        assert answer == controller.answers[1]
    for broker_id in (3, 2):
        await client.ask(CONTROLLED_SHUTDOWN, 1, {"brokerId": broker_id})
    own = threading.current_thread()
    assert [thread is own for thread in codec.threads] == [True, False, True, False]


async def test_a_stop_waits_for_requests_in_progress(controller: Controller) -> None:
    controller.may_answer.clear()
    async with (
        serving(controller, limited(stop_s=60.0)) as server,
        connected(server.port) as busy,
        connected(server.port) as idle,
    ):
        sent = busy.send(CONTROLLED_SHUTDOWN, 1, {"brokerId": 1})
        await until(lambda: controller.in_progress == 1)
        stopping = asyncio.create_task(server.stop())
        await idle.closed()
        controller.may_answer.set()
        await busy.answer(CONTROLLED_SHUTDOWN, 1, sent)
        await busy.closed()
        await stopping
        with pytest.raises(ConnectionError):
            await asyncio.open_connection("127.0.0.1", server.port)


async def test_a_stop_does_not_wait_for_ever(controller: Controller) -> None:
    controller.may_answer.clear()
    async with served(controller, limited(stop_s=0.05)) as (server, client):
        client.send(CONTROLLED_SHUTDOWN, 1, {"brokerId": 1})
        await until(lambda: controller.in_progress == 1)
        await server.stop()
        await client.closed()
    assert controller.in_progress == 0


async def test_connections_close_and_open_again(server: KafkaServer, client: KafkaClient) -> None:
    await client.ask(CONTROLLED_SHUTDOWN, 1, {"brokerId": 1})
    server.close_connections()
    await client.closed()
    async with connected(server.port) as again:
        assert await again.ask(CONTROLLED_SHUTDOWN, 1, {"brokerId": 1})


async def test_an_address_in_use_is_named(server: KafkaServer, controller: Controller) -> None:
    other = KafkaServer(ServerSettings(port=server.port), apis=(), dispatcher=controller)
    with pytest.raises(ConfigurationError, match=f"127.0.0.1:{server.port}.*endpoint_port"):
        await other.start()
    await other.stop()


async def test_files_are_reserved(controller: Controller, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("resource.getrlimit", lambda _: (1024, 4096))
    server = KafkaServer(ServerSettings(), apis=(), dispatcher=controller)
    assert server.settings.limits.connections == 768

"""A broker as far as its controller can see it: a TCP server that reads and answers requests.

It shares no code with the channels it is used against. By default every request is decoded with
kio's entities, which must consume it to the last byte, and answered like a healthy broker answers.
For benchmarks, ``decode=False`` answers from prepared bytes instead.
"""

from __future__ import annotations

import asyncio
import contextlib
import datetime
import enum
import io
import ssl
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any, Final, NamedTuple

from kio.schema.api_versions.v0 import response as api_versions_v0
from kio.schema.api_versions.v3 import response as api_versions_v3
from kio.schema.api_versions.v3.request import ApiVersionsRequest as ApiVersionsRequestV3
from kio.schema.describe_configs.v1 import request as describe_request
from kio.schema.describe_configs.v1 import response as describe_response
from kio.schema.errors import ErrorCode
from kio.schema.request_header.v1.header import RequestHeader as RequestHeaderV1
from kio.schema.request_header.v2.header import RequestHeader as RequestHeaderV2
from kio.schema.response_header.v0.header import ResponseHeader as ResponseHeaderV0
from kio.schema.response_header.v1.header import ResponseHeader as ResponseHeaderV1
from kio.serial import entity_reader, entity_writer
from kio.static.primitive import i8, i16, i32, i32Timedelta

from regent.model.cluster import Broker, EndPoint
from regent.protocol.entities.leader_and_isr import LEADER_AND_ISR_REQUEST, LEADER_AND_ISR_RESPONSE
from regent.protocol.entities.stop_replica import STOP_REPLICA_REQUEST, STOP_REPLICA_RESPONSE
from regent.protocol.entities.update_metadata import (
    UPDATE_METADATA_REQUEST,
    UPDATE_METADATA_RESPONSE,
)

LEADER_AND_ISR: Final = 4
STOP_REPLICA: Final = 5
UPDATE_METADATA: Final = 6
API_VERSIONS: Final = 18
DESCRIBE_CONFIGS: Final = 32

CONTROL_APIS: Final = {
    LEADER_AND_ISR: (LEADER_AND_ISR_REQUEST, LEADER_AND_ISR_RESPONSE),
    STOP_REPLICA: (STOP_REPLICA_REQUEST, STOP_REPLICA_RESPONSE),
    UPDATE_METADATA: (UPDATE_METADATA_REQUEST, UPDATE_METADATA_RESPONSE),
}

SUPPORTED_BY_3_9: Final = {
    LEADER_AND_ISR: (0, 7),
    STOP_REPLICA: (0, 4),
    UPDATE_METADATA: (0, 8),
    API_VERSIONS: (0, 4),
    DESCRIBE_CONFIGS: (0, 4),
}

_NO_THROTTLE: Final = i32Timedelta.parse(datetime.timedelta(0))


class Fault(enum.Enum):
    """What goes wrong with one control request, once it has been read."""

    CLOSE = "the connection is closed without an answer"
    SILENCE = "no answer ever comes"
    GARBAGE = "the body of the answer is nonsense"
    TRAILING = "the answer is longer than its schema"
    WRONG_CORRELATION = "the answer belongs to another request"
    TWICE = "the answer comes twice"
    HUGE = "the answer announces an impossible size"


class Received(NamedTuple):
    """One control request, and what the stub did instead of answering."""

    api_key: int
    api_version: int
    client_id: str | None
    correlation_id: int
    request: Any
    connection: int
    fault: Fault | None


class StubBroker:
    """One broker. Attributes may be changed between requests.

    Attributes:
        faults: Taken from the left, one per control request; None stands for a healthy answer.
        configs: Answer to DescribeConfigs; None: refuse it.
        hold: While cleared, control requests are read but not answered.
        slow_reading: Seconds to wait between two reads, to be a slow peer.
        questions: Requests so far that were no control requests.
    """

    def __init__(
        self,
        broker_id: int,
        *,
        epoch: int | None = None,
        protocol_version: str | None = "3.9-IV0",
        supported: Mapping[int, tuple[int, int]] = SUPPORTED_BY_3_9,
        decode: bool = True,
        ssl_context: ssl.SSLContext | None = None,
        registration_version: int = 5,
        rack: str | None = None,
    ) -> None:
        self.broker_id = broker_id
        self.epoch = 1000 + broker_id if epoch is None else epoch
        self.received: list[Received] = []
        self.connections = 0
        self.questions = 0
        self.faults: deque[Fault | None] = deque()
        self.configs: dict[str, str | None] | None = {
            "inter.broker.protocol.version": protocol_version,
            "inter.broker.listener.name": None,
            "security.inter.broker.protocol": "PLAINTEXT",
        }
        self.errors: dict[int, int] = {}
        self.partition_errors: dict[tuple[str, int], int] = {}
        self.hold = asyncio.Event()
        self.hold.set()
        self.slow_reading = 0.0
        self.port = 0
        self.supported = dict(supported)
        self._decode = decode
        self._ssl_context = ssl_context
        self._registration_version = registration_version
        self._rack = rack
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._changed = asyncio.Condition()
        self._canned: dict[tuple[int, int], bytes] = {}
        self.on_request: Callable[[Received], None] | None = None

    @property
    def endpoint(self) -> EndPoint:
        protocol = "PLAINTEXT" if self._ssl_context is None else "SSL"
        return EndPoint(protocol, protocol, "127.0.0.1", self.port)

    @property
    def registration(self) -> Broker:
        return Broker(
            broker_id=self.broker_id,
            epoch=self.epoch,
            endpoints=(self.endpoint,),
            rack=self._rack,
            registration_version=self._registration_version,
        )

    async def start(self) -> None:
        """Listen; on the same port as before, if there was one."""
        self._server = await asyncio.start_server(
            self._accept, "127.0.0.1", self.port, ssl=self._ssl_context, limit=2**20
        )
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        """Close the port and every connection."""
        if self._server is not None:
            self._server.close()
            self._server = None
        for task in list(self._tasks):
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)

    async def __aenter__(self) -> StubBroker:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def wait_for(self, count: int, *, timeout_s: float = 60.0) -> list[Received]:
        """Wait until that many control requests have been read; all of them."""
        await self.wait_until(lambda: len(self.received) >= count, timeout_s=timeout_s)
        return self.received

    async def wait_until(self, condition: Callable[[], bool], *, timeout_s: float = 60.0) -> None:
        """Wait for a condition that the stub's own progress makes true."""
        async with asyncio.timeout(timeout_s), self._changed:
            await self._changed.wait_for(condition)

    async def _notify(self) -> None:
        async with self._changed:
            self._changed.notify_all()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self.connections += 1
        try:
            await self._notify()
            await self._serve(reader, writer, self.connections)
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass  # the other side went away, or the stub is being stopped
        finally:
            self._tasks.discard(task)
            writer.transport.abort()

    async def _serve(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, connection: int
    ) -> None:
        while True:
            size = int.from_bytes(await reader.readexactly(4), "big")
            frame = await self._read_frame(reader, size)
            api_key = int.from_bytes(frame[:2], "big")
            version = int.from_bytes(frame[2:4], "big")
            if api_key not in CONTROL_APIS:
                self.questions += 1
                writer.write(self._answer_setup(api_key, version, frame))
                continue
            received = self._read_control_request(api_key, version, frame, connection)
            self.received.append(received)
            if self.on_request is not None:
                self.on_request(received)
            await self._notify()
            await self.hold.wait()
            if received.fault is Fault.SILENCE:
                await asyncio.Event().wait()
            if received.fault is Fault.CLOSE:
                return
            writer.write(self._answer(received))
            await writer.drain()

    async def _read_frame(self, reader: asyncio.StreamReader, size: int) -> bytes:
        if not self.slow_reading:
            return await reader.readexactly(size)
        chunks: list[bytes] = []
        while size:
            await asyncio.sleep(self.slow_reading)
            chunks.append(await reader.read(min(size, 65536)))
            if not chunks[-1]:
                raise asyncio.IncompleteReadError(b"", size)
            size -= len(chunks[-1])
        return b"".join(chunks)

    def _read_control_request(
        self, api_key: int, version: int, frame: bytes, connection: int
    ) -> Received:
        fault = self.faults.popleft() if self.faults else None
        message = CONTROL_APIS[api_key][0]
        if not self._decode:
            correlation_id = int.from_bytes(frame[4:8], "big")
            return Received(api_key, version, None, correlation_id, None, connection, fault)
        header, offset = _read_header(frame, flexible=version >= message.flexible_since)
        request, used = entity_reader(message[version])(frame, offset)
        assert offset + used == len(frame), f"{len(frame) - offset - used} bytes left over"
        return Received(
            api_key,
            version,
            header.client_id,
            header.correlation_id,
            request,
            connection,
            fault,
        )

    # Answers

    def _answer(self, received: Received) -> bytes:
        api_key, version = received.api_key, received.api_version
        correlation_id = received.correlation_id
        if received.fault is Fault.HUGE:
            return (2**31 - 1).to_bytes(4, "big") + b"HTTP/1.1 400 Bad Request"
        if received.fault is Fault.WRONG_CORRELATION:
            correlation_id += 1000
        flexible = version >= CONTROL_APIS[api_key][0].flexible_since
        if received.fault is Fault.GARBAGE:
            body = b"\x00"
        elif received.request is None:
            body = self._canned_body(api_key, version)
        else:
            body = encode(self._response(received))
        if received.fault is Fault.TRAILING:
            body += b"\x00"
        response = frame_response(correlation_id, body, flexible=flexible)
        return response * 2 if received.fault is Fault.TWICE else response

    def _canned_body(self, api_key: int, version: int) -> bytes:
        body = self._canned.get((api_key, version))
        if body is None:
            empty = {LEADER_AND_ISR: "topics" if version >= 5 else "partition_errors"}
            fields = (
                {} if api_key == UPDATE_METADATA else {empty.get(api_key, "partition_errors"): ()}
            )
            entity = CONTROL_APIS[api_key][1][version](error_code=ErrorCode.none, **fields)
            body = self._canned[api_key, version] = encode(entity)
        return body

    def _response(self, received: Received) -> Any:
        api_key, version = received.api_key, received.api_version
        message = CONTROL_APIS[api_key][1]
        error_code = ErrorCode(self.errors.get(api_key, 0))
        if api_key == UPDATE_METADATA:
            return message[version](error_code=error_code)
        if api_key == LEADER_AND_ISR and version >= 5:
            error = message.nested("LeaderAndIsrPartitionError", version)
            topic_error = message.nested("LeaderAndIsrTopicError", version)
            return message[version](
                error_code=error_code,
                topics=tuple(
                    topic_error(
                        topic_id=topic.topic_id,
                        partition_errors=tuple(
                            error(
                                partition_index=state.partition_index,
                                error_code=self._error_of(topic.topic_name, state.partition_index),
                            )
                            for state in topic.partition_states
                        ),
                    )
                    for topic in received.request.topic_states
                ),
            )
        name = "LeaderAndIsrPartitionError"
        if api_key == STOP_REPLICA:
            name = "StopReplicaPartitionError"
        error = message.nested(name, version)
        return message[version](
            error_code=error_code,
            partition_errors=tuple(
                error(
                    topic_name=topic,
                    partition_index=partition,
                    error_code=self._error_of(topic, partition),
                )
                for topic, partition in named_partitions(received)
            ),
        )

    def _error_of(self, topic: str, partition: int) -> ErrorCode:
        return ErrorCode(self.partition_errors.get((topic, partition), 0))

    def _answer_setup(self, api_key: int, version: int, frame: bytes) -> bytes:
        if api_key == API_VERSIONS:
            return self._answer_api_versions(version, frame)
        assert api_key == DESCRIBE_CONFIGS, f"unexpected API {api_key}"
        assert version == 1
        header, offset = _read_header(frame, flexible=False)
        request, _ = entity_reader(describe_request.DescribeConfigsRequest)(frame, offset)
        (resource,) = request.resources
        assert resource.resource_type == 4
        error = ErrorCode.none
        if self.configs is None:
            error = ErrorCode.cluster_authorization_failed
        elif resource.resource_name != str(self.broker_id):
            error = ErrorCode.invalid_request
        wanted = resource.configuration_keys or ()
        result = describe_response.DescribeConfigsResult(
            error_code=error,
            error_message=None,
            resource_type=i8(4),
            resource_name=resource.resource_name,
            configs=tuple(
                describe_response.DescribeConfigsResourceResult(
                    name=name,
                    value=value,
                    read_only=True,
                    config_source=i8(5),
                    is_sensitive=False,
                    synonyms=(),
                )
                for name, value in (self.configs or {}).items()
                if name in wanted
            ),
        )
        response = describe_response.DescribeConfigsResponse(
            throttle_time=_NO_THROTTLE, results=(result,)
        )
        return frame_response(header.correlation_id, encode(response), flexible=False)

    def _answer_api_versions(self, version: int, frame: bytes) -> bytes:
        correlation_id = int.from_bytes(frame[4:8], "big")
        lowest, highest = self.supported[API_VERSIONS]
        known = lowest <= version <= highest
        error_code = ErrorCode.none if known else ErrorCode.unsupported_version
        module = api_versions_v3 if known and version else api_versions_v0
        api_keys = tuple(
            module.ApiVersion(api_key=i16(key), min_version=i16(low), max_version=i16(high))
            for key, (low, high) in self.supported.items()
            if known
        )
        more: dict[str, Any] = {}
        if module is api_versions_v3:
            assert version == 3
            _, offset = _read_header(frame, flexible=True)
            request, used = entity_reader(ApiVersionsRequestV3)(frame, offset)
            assert offset + used == len(frame)
            assert request.client_software_name == "regent"
            more["throttle_time"] = _NO_THROTTLE
        kind: Any = module.ApiVersionsResponse
        body = encode(kind(error_code=error_code, api_keys=api_keys, **more))
        return frame_response(correlation_id, body, flexible=False)


def named_partitions(received: Received) -> list[tuple[str, int]]:
    """Partitions that a LeaderAndIsr, UpdateMetadata or StopReplica names, in its order."""
    request = received.request
    for field in ("ungrouped_partition_states", "ungrouped_partitions"):
        if hasattr(request, field):
            return [(each.topic_name, each.partition_index) for each in getattr(request, field)]
    if hasattr(request, "topics"):
        return [(each.name, index) for each in request.topics for index in each.partition_indexes]
    return [
        (topic.topic_name, state.partition_index)
        for topic in request.topic_states
        for state in topic.partition_states
    ]


def encode(entity: Any) -> bytes:
    """An entity's bytes by kio."""
    buffer = io.BytesIO()
    entity_writer(type(entity))(buffer, entity)
    return buffer.getvalue()


def frame_response(correlation_id: int, body: bytes, *, flexible: bool) -> bytes:
    """A response frame with its header by kio."""
    header = (ResponseHeaderV1 if flexible else ResponseHeaderV0)(
        correlation_id=i32(correlation_id)
    )
    message = encode(header) + body
    return len(message).to_bytes(4, "big") + message


def _read_header(frame: bytes, *, flexible: bool) -> tuple[Any, int]:
    if flexible:
        return entity_reader(RequestHeaderV2)(frame, 0)
    return entity_reader(RequestHeaderV1)(frame, 0)


@contextlib.asynccontextmanager
async def stub_brokers(count: int, **options: Any) -> AsyncIterator[list[StubBroker]]:
    """That many started stubs with ids from 1 on."""
    async with contextlib.AsyncExitStack() as stack:
        yield [
            await stack.enter_async_context(StubBroker(broker_id, **options))
            for broker_id in range(1, count + 1)
        ]

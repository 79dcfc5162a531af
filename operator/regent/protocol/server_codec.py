"""The server's side of the protocol: requests from bytes, answers to bytes.

A broker ends its process when an answer of its controller does not decode (2.7 to 3.9). So an
answer is read back before it is sent, and what cannot be answered without doubt is an error: the
connection is to be closed, which is harmless to every client.
"""

from __future__ import annotations

import io
import struct
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from kio.serial import entity_writer

from regent.model.errors import RegentError
from regent.protocol.entity_reader import plan_of, read_entity
from regent.protocol.framing import RequestHeader, decode_response, encode_request, joined
from regent.protocol.primitives import NO_TAGS, DecodeError, Reader
from regent.protocol.served_apis import (
    API_VERSIONS,
    BROKER_APIS,
    CONTROLLED_SHUTDOWN,
    MAX_ELEMENTS,
    Api,
)

_LARGE_ELEMENTS: Final = 1_000

_pack_head: Final = struct.Struct(">ii").pack


class UnsupportedRequestError(DecodeError):
    """A request of an API, or of a version of it, that is not served."""

    def __init__(self, header: RequestHeader) -> None:
        super().__init__(f"version {header.api_version} of API {header.api_key} is not served here")
        self.header = header


class EncodeError(RegentError):
    """An answer that does not fit its request, or its fields their types: a defect."""


class Request(NamedTuple):
    """A request of a client.

    Attributes:
        header: What the request says of itself.
        entity: Its body: an entity of that API and version.
    """

    header: RequestHeader
    entity: Any


class ServerCodec:
    """Reads requests and writes answers of the APIs that a server serves.

    Args:
        apis: These APIs by key.

    Raises:
        TypeError: If a request of theirs has a field that cannot be read.
    """

    def __init__(self, apis: Mapping[int, Api]) -> None:
        self.apis = apis
        for api in apis.values():
            for request in api.requests.values():
                plan_of(request)

    def decode(self, frame: bytes) -> Request:
        """The request in a frame, whatever its bytes are.

        Raises:
            UnsupportedRequestError: If the API or its version is not served. The client id is not
                read then: it is None.
            DecodeError: If the frame is no request.
        """
        head = Reader(frame)
        api_key, api_version, correlation_id = head.int16(), head.int16(), head.int32()
        api = self.apis.get(api_key)
        kind = None if api is None else api.requests.get(api_version)
        if kind is None:
            raise UnsupportedRequestError(RequestHeader(api_key, api_version, correlation_id, None))
        client_id = None
        if (api_key, api_version) != (CONTROLLED_SHUTDOWN.key, 0):
            client_id = head.nullable_string()
        reader = Reader(
            head.rest(),
            flexible=kind.__flexible__,
            max_elements=None if api in BROKER_APIS else MAX_ELEMENTS,
        )
        reader.tags()
        entity = read_entity(kind, reader)
        # What follows is ignored, as by brokers (RequestContext.parseRequest): librdkafka sends one
        # byte too many with AlterUserScramCredentials.
        return Request(RequestHeader(api_key, api_version, correlation_id, client_id), entity)

    def encode(self, header: RequestHeader, entity: Any) -> bytes:
        """The whole frame of an answer, length included.

        Args:
            header: Of the request.
            entity: The answer, in the version of the request. (An ApiVersions request of an unknown
                version is answered in version 0.)

        Raises:
            EncodeError: If the answer is of another API or version, or cannot be encoded.
        """
        kind = type(entity)
        expected = self.apis[header.api_key].responses.get(header.api_version)
        if kind is not (expected or API_VERSIONS.responses[0]):
            raise EncodeError(
                f"an answer of class {kind.__module__}.{kind.__name__} does not fit version "
                f"{header.api_version} of API {header.api_key}"
            )
        body = encode_entity(kind, entity)
        tags = NO_TAGS if kind.__flexible__ and header.api_key != API_VERSIONS.key else b""
        size = 4 + len(tags) + len(body)
        return _pack_head(size, header.correlation_id) + tags + body

    def encode_request(self, header: RequestHeader, entity: Any) -> bytes:
        """The frame of a request to a broker, without its length.

        Raises:
            EncodeError: If it cannot be encoded.
        """
        flexible = type(entity).__flexible__
        parts = encode_request(header, [encode_entity(type(entity), entity)], flexible=flexible)
        return joined(parts)[4:]

    def decode_answer(self, header: RequestHeader, frame: bytes) -> Any:
        """The entity of a broker's answer.

        Args:
            header: Of the request.

        Raises:
            DecodeError: If the frame is no answer to it.
        """
        kind = self.apis[header.api_key].responses[header.api_version]
        body = decode_response(
            frame,
            correlation_id=header.correlation_id,
            api_key=header.api_key,
            flexible=kind.__flexible__,
        )
        reader = Reader(body, flexible=kind.__flexible__)
        entity = read_entity(kind, reader)
        reader.expect_end()
        return entity


def is_large(entity: Any) -> bool:
    """Whether an answer takes some ten milliseconds to encode: it lists that much. Looks at two
    levels of arrays, such as topics and their partitions."""
    count = 0
    for array in _arrays(entity):
        for element in array:
            count += 1 + sum(map(len, _arrays(element)))
            if count >= _LARGE_ELEMENTS:
                return True
    return False


def _arrays(entity: Any) -> list[tuple[Any, ...]]:
    fields = getattr(entity, "__dataclass_fields__", ())
    return [value for name in fields if isinstance(value := getattr(entity, name), tuple)]


def encode_entity(kind: type[Any], entity: Any) -> bytes:
    buffer = io.BytesIO()
    try:
        entity_writer(kind)(buffer, entity)
        body = buffer.getvalue()
        reader = Reader(body, flexible=kind.__flexible__)
        is_readable = read_entity(kind, reader) == entity
        reader.expect_end()
    except Exception as error:  # kio's own, and whatever a value of a wrong type leads to
        raise EncodeError(f"{kind.__name__} cannot be encoded: {error}") from error
    if not is_readable:
        raise EncodeError(f"{kind.__name__} would be read as something else than what it says")
    return body

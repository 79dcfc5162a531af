"""Requests in the queue of a channel: encoded only when their turn comes."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol, TypeVar

import msgspec

from regent.protocol import leader_and_isr, stop_replica, update_metadata
from regent.protocol.control_requests import (
    ControlResponse,
    LeaderAndIsrResponse,
    StopReplicaResponse,
    UpdateMetadataResponse,
)
from regent.protocol.leader_and_isr import decode_leader_and_isr_response
from regent.protocol.request_encoder import Body, RequestEncoder
from regent.protocol.stop_replica import decode_stop_replica_response
from regent.protocol.update_metadata import decode_update_metadata_response

R = TypeVar("R", LeaderAndIsrResponse, StopReplicaResponse, UpdateMetadataResponse)


class EncodedRequest(NamedTuple):
    """A request in the version that was chosen for its receiver.

    Attributes:
        decode: Makes the response value of the body of the answer; raises DecodeError.
    """

    api_version: int
    flexible: bool
    body: Body
    decode: Callable[[bytes], ControlResponse]


class OutgoingRequest(Protocol):
    """One request of a batch to one receiver."""

    @property
    def api_key(self) -> int: ...

    @property
    def encoder(self) -> RequestEncoder: ...

    @property
    def broker_id(self) -> int: ...

    def encode(self, version: int) -> list[EncodedRequest]:
        """The request, as one or more on the wire, to be sent in order."""
        ...


class OutgoingLeaderAndIsr(NamedTuple):
    """The LeaderAndIsr of a batch to one receiver."""

    encoder: RequestEncoder
    broker_id: int

    @property
    def api_key(self) -> int:
        return leader_and_isr.API_KEY

    def encode(self, version: int) -> list[EncodedRequest]:
        encoder, broker_id = self
        return [
            EncodedRequest(
                version,
                leader_and_isr.is_flexible(version),
                encoder.leader_and_isr(broker_id, version),
                lambda body: _stamped(
                    decode_leader_and_isr_response(
                        version, body, requests=encoder.requests, broker_id=broker_id
                    ),
                    encoder,
                ),
            )
        ]


class OutgoingUpdateMetadata(NamedTuple):
    """The UpdateMetadata of a batch to one receiver."""

    encoder: RequestEncoder
    broker_id: int

    @property
    def api_key(self) -> int:
        return update_metadata.API_KEY

    def encode(self, version: int) -> list[EncodedRequest]:
        encoder, broker_id = self
        return [
            EncodedRequest(
                version,
                update_metadata.is_flexible(version),
                encoder.update_metadata(broker_id, version),
                lambda body: _stamped(
                    decode_update_metadata_response(version, body, broker_id=broker_id), encoder
                ),
            )
        ]


class OutgoingStopReplica(NamedTuple):
    """The StopReplica of a batch to one receiver; two requests in old versions."""

    encoder: RequestEncoder
    broker_id: int

    @property
    def api_key(self) -> int:
        return stop_replica.API_KEY

    def encode(self, version: int) -> list[EncodedRequest]:
        wanted = self.encoder.requests.stop_replica[self.broker_id]
        return [self._encode(version, part) for part in stop_replica.split(wanted, version=version)]

    def _encode(self, version: int, partitions: stop_replica.Partitions) -> EncodedRequest:
        encoder, broker_id = self
        return EncodedRequest(
            version,
            stop_replica.is_flexible(version),
            encoder.stop_replica(broker_id, version, partitions=partitions),
            lambda body: _stamped(
                decode_stop_replica_response(
                    version, body, broker_id=broker_id, partitions=partitions
                ),
                encoder,
            ),
        )


def _stamped(response: R, encoder: RequestEncoder) -> R:
    """The answer with the epochs that its request carried."""
    requests = encoder.requests
    return msgspec.structs.replace(
        response,
        controller_epoch=requests.controller_epoch,
        broker_epoch=requests.brokers[response.broker_id].epoch,
    )

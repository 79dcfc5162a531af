"""Reads what brokers were sent, with the clock stopped, and checks what holds for any request."""

from collections.abc import Mapping

from benchmarks.errors import BenchmarkError
from benchmarks.stub.answers import CONTROL_APIS, STOP_REPLICA, UPDATE_METADATA, Header, read_header
from benchmarks.stub.exchanges import Exchange
from benchmarks.stub.requests import (
    ControlRequest,
    RequestReader,
    fence,
    fence_end,
    reference_reading,
)


class CheckedReader:
    """Decodes the requests of one controller.

    The first request of each kind is decoded by a second decoder as well. All brokers get the same
    UpdateMetadata but for the broker epoch: it is decoded once.

    Args:
        broker_epochs: The czxids of the brokers' registrations, by id.
        broker_ids: Brokers that every list of live brokers has to name.
    """

    def __init__(self, broker_epochs: Mapping[int, int], broker_ids: frozenset[int]) -> None:
        self._broker_epochs = broker_epochs
        self._broker_ids = broker_ids
        self._reader = RequestReader()
        self._bodies: dict[bytes, ControlRequest] = {}
        self._compared: set[tuple[int, int, bool]] = set()

    def forget(self) -> None:
        """Drop what was decoded."""
        self._bodies.clear()

    def read(self, exchange: Exchange) -> ControlRequest:
        """Decode a request.

        Raises:
            BenchmarkError: It does not decode, or has another's broker epoch, or does not list a
                broker that is live, or the two decoders differ.
        """
        header = read_header(exchange.frame)
        _, _, broker_epoch = fence(exchange.frame, header)
        if broker_epoch != self._broker_epochs[exchange.broker_id]:
            raise BenchmarkError(f"broker {exchange.broker_id} was sent another's broker epoch")
        assert header.api_key in CONTROL_APIS
        body = bytes((header.api_key,)) + bytes(exchange.frame[fence_end(header) :])
        request = self._bodies.get(body)
        if request is None:
            request = self._bodies[body] = self._decode(exchange, header)
        return request

    def _decode(self, exchange: Exchange, header: Header) -> ControlRequest:
        request = self._reader.read(exchange.frame, header)
        if header.api_key == UPDATE_METADATA and not self._broker_ids <= request.brokers.keys():
            raise BenchmarkError(f"UpdateMetadata lists only the brokers {[*request.brokers]}")
        kind = (request.controller_id, header.api_key, bool(request.remarks))
        is_worth_it = request.partitions or header.api_key == STOP_REPLICA
        if is_worth_it and kind not in self._compared:
            self._compared.add(kind)
            if request != reference_reading(exchange.frame, header):
                raise BenchmarkError(f"API {header.api_key} of {kind[0]} decodes in two ways")
        return request

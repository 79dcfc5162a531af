"""Decides, after the clock has stopped, whether and when every broker had been sent everything."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from benchmarks.cluster import Cluster
from benchmarks.errors import BenchmarkError
from benchmarks.stub.answers import LEADER_AND_ISR, UPDATE_METADATA, Header, read_header
from benchmarks.stub.exchanges import Exchange
from benchmarks.stub.requests import (
    ControlRequest,
    PartitionState,
    RequestReader,
    fence,
    reference_reading,
)
from benchmarks.zookeeper import Election


class Delivery(NamedTuple):
    """What the brokers were sent; monotonic nanoseconds.

    Attributes:
        first_request_at: The first bytes of the first request at any broker.
        first_partitions_at: The first bytes of the first request with partitions.
        leader_and_isr_at: The last answer to a LeaderAndIsr that was needed.
        complete_at: The last answer that was needed: every broker had been sent everything.
        requests: How many control requests there were.
        request_bytes: Their size altogether.
    """

    first_request_at: int
    first_partitions_at: int
    leader_and_isr_at: int
    complete_at: int
    requests: int
    request_bytes: int


@dataclass(slots=True)
class _Missing:
    """What a broker has not been sent yet, and when the last of it was answered."""

    leader_and_isr: set[tuple[str, int]]
    update_metadata: set[tuple[str, int]]
    completed_at: dict[int, int] = field(default_factory=dict)

    def told(self, exchange: Exchange, partitions: Iterable[tuple[str, int]]) -> None:
        is_leader_and_isr = exchange.api_key == LEADER_AND_ISR
        missing = self.leader_and_isr if is_leader_and_isr else self.update_metadata
        if missing:
            missing.difference_update(partitions)
            if not missing:
                self.completed_at[exchange.api_key] = exchange.answered_at


class Verifier:
    """Checks the requests of one election after the other against the cluster.

    `broker_epochs` are the czxids of the brokers' registrations.
    """

    def __init__(self, cluster: Cluster, broker_epochs: Mapping[int, int]) -> None:
        self._cluster = cluster
        self._broker_epochs = broker_epochs
        self._hosted = {b: frozenset(cluster.hosted_by(b)) for b in cluster.broker_ids}
        self._expected: dict[tuple[str, int], PartitionState] = {
            (tp.topic, tp.partition): PartitionState(
                p.state.controller_epoch,
                p.state.leader,
                p.state.leader_epoch,
                p.state.isr,
                p.state.partition_epoch,
                p.replicas,
            )
            for tp, p in cluster.states.items()
        }
        self._reader = RequestReader()
        self._checked: set[tuple[int, int]] = set()

    def verify(self, election: Election, exchanges: Iterable[Exchange]) -> Delivery:
        """When an elected controller had sent everything to all brokers.

        Raises:
            BenchmarkError: it has not, or something that it sent was wrong.
        """
        everything = self._expected.keys()
        missing = {
            broker_id: _Missing(set(self._hosted[broker_id]), set(everything))
            for broker_id in self._cluster.broker_ids
        }
        bodies: dict[bytes, ControlRequest] = {}
        begins: list[int] = []
        begins_with_partitions: list[int] = []
        size = 0
        for exchange in exchanges:
            header = read_header(exchange.frame)
            if fence(exchange.frame, header)[:2] != (election.controller_id, election.epoch):
                continue  # from the one before, not informed of its end
            request = self._read(exchange, header, bodies)
            begins.append(exchange.began_at)
            size += len(exchange.frame)
            if request.partitions:
                begins_with_partitions.append(exchange.began_at)
            missing[exchange.broker_id].told(exchange, request.partitions)
        _require_complete(missing)
        return Delivery(
            first_request_at=min(begins),
            first_partitions_at=min(begins_with_partitions),
            leader_and_isr_at=max(m.completed_at[LEADER_AND_ISR] for m in missing.values()),
            complete_at=max(max(m.completed_at.values()) for m in missing.values()),
            requests=len(begins),
            request_bytes=size,
        )

    def _read(
        self, exchange: Exchange, header: Header, bodies: dict[bytes, ControlRequest]
    ) -> ControlRequest:
        """Decode a request and compare it with what is true.

        All brokers get the same UpdateMetadata but for the broker epoch: it is read once.
        """
        _, _, broker_epoch = fence(exchange.frame, header)
        if broker_epoch != self._broker_epochs[exchange.broker_id]:
            raise BenchmarkError(f"broker {exchange.broker_id} was sent another's broker epoch")
        if header.api_key not in (LEADER_AND_ISR, UPDATE_METADATA):
            raise BenchmarkError(f"no side should have sent requests of API {header.api_key}")
        body = bytes((header.api_key,)) + exchange.frame[header.end + 16 :]
        known = bodies.get(bytes(body))
        if known is not None:
            return known
        request = self._reader.read(exchange.frame, header)
        self._compare(request, header)
        kind = (request.controller_id, header.api_key)
        if request.partitions and kind not in self._checked:
            self._checked.add(kind)
            if request != reference_reading(exchange.frame, header):
                raise BenchmarkError(f"API {header.api_key} of {kind[0]} decodes in two ways")
        bodies[bytes(body)] = request
        return request

    def _compare(self, request: ControlRequest, header: Header) -> None:
        stubs = set(self._cluster.broker_ids)
        if header.api_key == UPDATE_METADATA and not stubs <= request.broker_ids:
            raise BenchmarkError(f"UpdateMetadata lists only the brokers {request.broker_ids}")
        for partition, state in request.partitions.items():
            expected = self._expected.get(partition)
            if state != expected:
                raise BenchmarkError(f"{partition}: {state} was sent, {expected} is true")


def _require_complete(missing: Mapping[int, _Missing]) -> None:
    for broker_id, left in missing.items():
        if left.leader_and_isr or left.update_metadata:
            raise BenchmarkError(
                f"broker {broker_id} was not sent {len(left.leader_and_isr)} of its replicas"
                f" and of {len(left.update_metadata)} partitions"
            )

"""Decides, after the clock has stopped, whether and when every broker had been sent everything."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from benchmarks.cluster import Cluster
from benchmarks.errors import BenchmarkError
from benchmarks.reading import CheckedReader
from benchmarks.stub.answers import LEADER_AND_ISR, STOP_REPLICA, read_header
from benchmarks.stub.exchanges import Exchange
from benchmarks.stub.requests import ControlRequest, PartitionState, fence
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
        self._reader = CheckedReader(broker_epochs, frozenset(cluster.broker_ids))

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
        compared: set[int] = set()
        begins: list[int] = []
        begins_with_partitions: list[int] = []
        size = 0
        for exchange in exchanges:
            header = read_header(exchange.frame)
            if fence(exchange.frame, header)[:2] != (election.controller_id, election.epoch):
                continue  # from the one before, not informed of its end
            request = self._reader.read(exchange)
            if id(request) not in compared:  # the reader keeps it
                compared.add(id(request))
                self._compare(request, exchange)
            begins.append(exchange.began_at)
            size += len(exchange.frame)
            if request.partitions:
                begins_with_partitions.append(exchange.began_at)
            missing[exchange.broker_id].told(exchange, request.partitions)
        self._reader.forget()
        _require_complete(missing)
        return Delivery(
            first_request_at=min(begins),
            first_partitions_at=min(begins_with_partitions),
            leader_and_isr_at=max(m.completed_at[LEADER_AND_ISR] for m in missing.values()),
            complete_at=max(max(m.completed_at.values()) for m in missing.values()),
            requests=len(begins),
            request_bytes=size,
        )

    def _compare(self, request: ControlRequest, exchange: Exchange) -> None:
        if exchange.api_key == STOP_REPLICA:
            raise BenchmarkError("no side should have stopped replicas")
        if request.remarks:
            raise BenchmarkError("a partition is new, or is being reassigned, or is offline")
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

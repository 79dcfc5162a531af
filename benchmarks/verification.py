"""Decides, after the clock has stopped, whether and when every broker had been sent everything."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from benchmarks.cluster import Cluster, Partition
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


class Versions(NamedTuple):
    """Which states of partitions may be sent, by the dataVersion of their znodes; 0 for those that
    are not named.

    Attributes:
        oldest: What each partition had when the controller was elected.
        newest: What it has now.
    """

    oldest: Mapping[tuple[str, int], int]
    newest: Mapping[tuple[str, int], int]


UNCHANGED: Final = Versions({}, {})
"""Nothing has ever changed."""


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
        self._partitions: dict[tuple[str, int], Partition] = {
            (tp.topic, tp.partition): partition for tp, partition in cluster.states.items()
        }
        self._reader = CheckedReader(broker_epochs, frozenset(cluster.broker_ids))

    def verify(
        self, election: Election, exchanges: Iterable[Exchange], versions: Versions = UNCHANGED
    ) -> Delivery:
        """When an elected controller had sent everything to all brokers.

        Args:
            versions: Of the partitions, where they have changed or do change.

        Raises:
            BenchmarkError: it has not, or something that it sent was wrong.
        """
        everything = self._partitions.keys()
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
                self._compare(request, exchange, versions)
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

    def _compare(self, request: ControlRequest, exchange: Exchange, versions: Versions) -> None:
        if exchange.api_key == STOP_REPLICA:
            raise BenchmarkError("no side should have stopped replicas")
        if request.remarks:
            raise BenchmarkError("a partition is new, or is being reassigned, or is offline")
        for partition, sent in request.partitions.items():
            oldest, newest = versions.oldest.get(partition, 0), versions.newest.get(partition, 0)
            true = self._state(partition, min(max(sent.partition_epoch, oldest), newest))
            if sent != true:
                raise BenchmarkError(
                    f"{partition}: {sent} was sent, {true} is true, or later ones up to {newest}"
                )

    def _state(self, partition: tuple[str, int], version: int) -> PartitionState | None:
        known = self._partitions.get(partition)
        if known is None:
            return None
        state = known.state_at(version)
        return PartitionState(
            state.controller_epoch,
            state.leader,
            state.leader_epoch,
            state.isr,
            state.partition_epoch,
            known.replicas,
        )


def _require_complete(missing: Mapping[int, _Missing]) -> None:
    for broker_id, left in missing.items():
        if left.leader_and_isr or left.update_metadata:
            raise BenchmarkError(
                f"broker {broker_id} was not sent {len(left.leader_and_isr)} of its replicas"
                f" and of {len(left.update_metadata)} partitions"
            )

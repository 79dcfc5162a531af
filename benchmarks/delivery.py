"""When brokers had been sent what they need, judged by what is in ZooKeeper afterwards."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from benchmarks.errors import BenchmarkError
from benchmarks.reading import CheckedReader
from benchmarks.stub.answers import LEADER_AND_ISR, UPDATE_METADATA, read_header
from benchmarks.stub.exchanges import Exchange
from benchmarks.stub.requests import PartitionId, PartitionState, Stopped, fence
from benchmarks.zookeeper import Election
from regent.model.partition import EPOCH_DURING_DELETE, LeaderAndIsr, TopicPartition

T = TypeVar("T")

LEADER_DURING_DELETE = -2


class Newest(Generic[T]):
    """What a broker was sent last of each partition, and when the answer to that was given."""

    def __init__(self) -> None:
        self._sent: dict[PartitionId, tuple[T, int]] = {}

    def note(self, partitions: Mapping[PartitionId, T], answered_at: int) -> None:
        """The broker was sent these. The first answer counts for what is sent again."""
        for partition, sent in partitions.items():
            known = self._sent.get(partition)
            if known is None or known[0] != sent:
                self._sent[partition] = (sent, answered_at)

    def get(self, partition: PartitionId) -> tuple[T | None, int]:
        """None and 0 if nothing was sent."""
        return self._sent.get(partition, (None, 0))


@dataclass(slots=True)
class Informed:
    """What one broker was sent."""

    leader_and_isr: Newest[PartitionState] = field(default_factory=Newest)
    update_metadata: Newest[PartitionState] = field(default_factory=Newest)
    stop_replica: Newest[Stopped] = field(default_factory=Newest)


class Delivery:
    """All requests of one controller to live brokers, in the order of their answers.

    Args:
        broker_epochs: The live brokers.

    Raises:
        BenchmarkError: a request does not decode, is another broker's, or names a leader without a
            replica.
    """

    def __init__(
        self,
        exchanges: Iterable[Exchange],
        election: Election,
        broker_epochs: Mapping[int, int],
    ) -> None:
        self.requests = 0
        self.request_bytes = 0
        self.first_request_at = 0
        self._brokers = {broker_id: Informed() for broker_id in broker_epochs}
        reader = CheckedReader(broker_epochs, frozenset(broker_epochs))
        checked: set[int] = set()
        for exchange in exchanges:
            header = read_header(exchange.frame)
            if fence(exchange.frame, header)[:2] != (election.controller_id, election.epoch):
                raise BenchmarkError(f"broker {exchange.broker_id} was sent another's request")
            if exchange.broker_id not in self._brokers:
                continue  # it has just died
            request = reader.read(exchange)
            if id(request) not in checked:  # the reader keeps it
                checked.add(id(request))
                _require_sane(request.partitions)
            self.first_request_at = self.first_request_at or exchange.began_at
            self.requests += 1
            self.request_bytes += len(exchange.frame)
            informed = self._brokers[exchange.broker_id]
            if exchange.api_key == LEADER_AND_ISR:
                informed.leader_and_isr.note(request.partitions, exchange.answered_at)
            elif exchange.api_key == UPDATE_METADATA:
                informed.update_metadata.note(request.partitions, exchange.answered_at)
            else:
                informed.stop_replica.note(request.stopped, exchange.answered_at)

    def leaders_known_at(
        self,
        states: Mapping[TopicPartition, LeaderAndIsr],
        replicas: Mapping[TopicPartition, tuple[int, ...]],
    ) -> int:
        """The last answer needed for all brokers to know the leaderships that ZooKeeper has, and
        for those with a replica to have taken them over; monotonic nanoseconds.

        Raises:
            BenchmarkError: a broker does not know one, or was sent another one last.
        """
        live = {tp: [b for b in self._brokers if b in replicas[tp]] for tp in states}
        return max(self.announced_at(states, replicas), self.taken_over_at(states, replicas, live))

    def announced_at(
        self,
        states: Mapping[TopicPartition, LeaderAndIsr],
        replicas: Mapping[TopicPartition, tuple[int, ...]],
    ) -> int:
        """The last answer needed for all brokers to know leaderships by UpdateMetadata.

        Raises:
            BenchmarkError: as in `leaders_known_at`.
        """
        last = 0
        for tp, state in states.items():
            true = _partition_state(state, replicas[tp])
            for broker_id, informed in self._brokers.items():
                sent, answered_at = informed.update_metadata.get(tp)
                _require_true(sent, true, f"broker {broker_id}, UpdateMetadata, {tp}")
                last = max(last, answered_at)
        return last

    def taken_over_at(
        self,
        states: Mapping[TopicPartition, LeaderAndIsr],
        replicas: Mapping[TopicPartition, tuple[int, ...]],
        receivers: Mapping[TopicPartition, Iterable[int]],
    ) -> int:
        """The last answer needed for brokers to have taken leaderships over, by LeaderAndIsr.

        Raises:
            BenchmarkError: as in `leaders_known_at`.
        """
        last = 0
        for tp, state in states.items():
            true = _partition_state(state, replicas[tp])
            for broker_id in receivers[tp]:
                sent, answered_at = self._brokers[broker_id].leader_and_isr.get(tp)
                _require_true(sent, true, f"broker {broker_id}, LeaderAndIsr, {tp}")
                last = max(last, answered_at)
        return last

    def stopped_at(self, broker_id: int, partitions: Iterable[TopicPartition]) -> int:
        """The last answer of a broker that has been sent the stop of replicas, not to be deleted.

        Raises:
            BenchmarkError: it was not sent one, or was to delete it.
        """
        last = 0
        for tp in partitions:
            stopped, answered_at = self._brokers[broker_id].stop_replica.get(tp)
            if stopped is None or stopped.delete:
                raise BenchmarkError(f"broker {broker_id} was sent {stopped} of {tp}")
            last = max(last, answered_at)
        return last

    def deletions_answered_at(self, replicas: Mapping[TopicPartition, Iterable[int]]) -> int:
        """The last answer to a deletion of replicas; monotonic nanoseconds.

        Raises:
            BenchmarkError: a broker was not sent one.
        """
        last = 0
        for tp, broker_ids in replicas.items():
            for broker_id in broker_ids:
                stopped, answered_at = self._brokers[broker_id].stop_replica.get(tp)
                if stopped is None or not stopped.delete:
                    raise BenchmarkError(f"broker {broker_id} was not sent the deletion of {tp}")
                last = max(last, answered_at)
        return last

    def require_forgotten(self, partitions: Iterable[TopicPartition]) -> None:
        """All brokers know that partitions are being deleted.

        Raises:
            BenchmarkError: one does not.
        """
        for tp in partitions:
            for broker_id, informed in self._brokers.items():
                state, _ = informed.update_metadata.get(tp)
                if state is None or state.leader != LEADER_DURING_DELETE:
                    raise BenchmarkError(f"broker {broker_id} was sent {state} of {tp}, deleted")

    def require_epoch_of_deletion(self, replicas: Mapping[TopicPartition, Iterable[int]]) -> None:
        """Replicas of deleted topics were stopped whatever their leader epoch.

        Raises:
            BenchmarkError: one was not.
        """
        for tp, broker_ids in replicas.items():
            for broker_id in broker_ids:
                stopped, _ = self._brokers[broker_id].stop_replica.get(tp)
                if stopped is None or stopped.leader_epoch != EPOCH_DURING_DELETE:
                    raise BenchmarkError(f"broker {broker_id} was sent {stopped} of {tp}")


def _partition_state(state: LeaderAndIsr, replicas: tuple[int, ...]) -> PartitionState:
    return PartitionState(
        state.controller_epoch,
        state.leader,
        state.leader_epoch,
        state.isr,
        state.partition_epoch,
        replicas,
    )


def _require_true(sent: PartitionState | None, true: PartitionState, where: str) -> None:
    if sent != true:
        raise BenchmarkError(f"{where}: was sent {sent}, {true} is true")


def _require_sane(partitions: Mapping[PartitionId, PartitionState]) -> None:
    """No leader without a replica. ISRs of replicas that leave hold these for a while."""
    for partition, state in partitions.items():
        if state.leader not in (LEADER_DURING_DELETE, *state.replicas):
            raise BenchmarkError(f"{partition} is led by a broker without a replica: {state}")

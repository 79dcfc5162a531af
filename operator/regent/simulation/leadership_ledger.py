"""Who leads what, and who is in sync, as ZooKeeper has it: kept up to date transaction by
transaction, so that no question costs a look at all partitions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from regent.model.partition import NO_LEADER, LeaderAndIsr, TopicPartition
from regent.simulation.zookeeper import AppliedTransaction, InMemoryZooKeeper
from regent.zk_data import paths
from regent.zk_data.operations import Create, SetData, ZNode
from regent.zk_data.topics import partition_state_decoder

_TOPICS: Final = paths.BROKER_TOPICS + "/"


class LeadershipLedger:
    """Follows the state znodes of partitions.

    Args:
        replicas: Of each partition.
        min_isr: ``min.insync.replicas`` of each topic.

    Attributes:
        states: Of each partition that has ever had a leader.
        led: Broker -> partitions that it leads.
        leaderless: Partitions without a leader.
        below_min_isr: Partitions with a leader whose ISR is smaller than ``min.insync.replicas``.
        under_replicated: Partitions whose ISR lacks a replica.
    """

    def __init__(
        self,
        zookeeper: InMemoryZooKeeper,
        replicas: Mapping[TopicPartition, tuple[int, ...]],
        min_isr: Mapping[str, int],
    ) -> None:
        self._replicas = replicas
        self._min_isr = min_isr
        self._decode = partition_state_decoder()
        self.states: dict[TopicPartition, LeaderAndIsr] = {}
        self.led: dict[int, dict[TopicPartition, None]] = {}
        self.leaderless: dict[TopicPartition, None] = {}
        self.below_min_isr: dict[TopicPartition, None] = {}
        self.under_replicated: dict[TopicPartition, None] = {}
        self._unclean: dict[TopicPartition, None] = {}
        self._moved: dict[TopicPartition, int] = {}
        zookeeper.on_transaction(self._applied)

    def take_moved(self) -> dict[TopicPartition, int]:
        """Partitions whose leader has changed since the last call, with the leader before; it may
        be the same again."""
        moved, self._moved = self._moved, {}
        return moved

    def take_unclean(self) -> dict[TopicPartition, None]:
        """Partitions that have got a leader from outside their ISR since the last call."""
        unclean, self._unclean = self._unclean, {}
        return unclean

    def _applied(self, transaction: AppliedTransaction) -> None:
        for operation in transaction.operations:
            if isinstance(operation, SetData | Create) and operation.path.startswith(_TOPICS):
                tp = paths.partition_of_state(operation.path)
                if tp is not None:
                    self._note(tp, self._decode(operation.path, _node(operation.data)))

    def _note(self, tp: TopicPartition, state: LeaderAndIsr) -> None:
        before = self.states.get(tp)
        self.states[tp] = state
        if before is None or before.leader != state.leader:
            self._lead(tp, before, state)
        has_leader = state.leader != NO_LEADER
        in_sync, replicas = len(state.isr), len(self._replicas[tp])
        _put(self.leaderless, tp, not has_leader)
        _put(self.under_replicated, tp, in_sync < replicas)
        _put(self.below_min_isr, tp, has_leader and in_sync < self._min_isr[tp.topic])

    def _lead(self, tp: TopicPartition, before: LeaderAndIsr | None, state: LeaderAndIsr) -> None:
        if before is not None:
            self._moved.setdefault(tp, before.leader)
            if before.leader != NO_LEADER:
                self.led[before.leader].pop(tp)
            if state.leader != NO_LEADER and state.leader not in before.isr:
                self._unclean[tp] = None
        if state.leader != NO_LEADER:
            self.led.setdefault(state.leader, {})[tp] = None


def _node(data: bytes) -> ZNode:
    """A node with these data. Its versions do not matter here, so equal data are decoded once."""
    return ZNode(data, 0, 0, 0, 0)


def _put(members: dict[TopicPartition, None], tp: TopicPartition, belongs: bool) -> None:
    if belongs:
        members[tp] = None
    else:
        members.pop(tp, None)

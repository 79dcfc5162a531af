"""States of replicas by the broker that hosts them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import islice
from types import MappingProxyType

from regent.controller.state.states import ReplicaState
from regent.model.partition import TopicPartition

_NO_STATES: Mapping[TopicPartition, ReplicaState] = MappingProxyType({})


class ReplicaStates:
    """Tables of states, one for each broker.

    At a failover all replicas of a broker are in one state, and brokers wait for what follows. So
    what is loaded is kept as it comes, and becomes a table later, in parts
    (:meth:`tabulate_some`), or as soon as somebody asks for a state of that broker.
    """

    def __init__(self) -> None:
        self._tables: dict[int, dict[TopicPartition, ReplicaState]] = {}
        self._loaded: dict[int, _Loaded] = {}

    def on(self, broker_id: int) -> Mapping[TopicPartition, ReplicaState]:
        """State of every known replica on a broker."""
        return self._table(broker_id) or _NO_STATES

    def has_some_on(self, broker_id: int) -> bool:
        """Whether any replica on a broker is known."""
        return broker_id in self._loaded or bool(self._tables.get(broker_id))

    def hosts(self) -> Iterator[int]:
        """Brokers on which replicas are known."""
        return filter(self.has_some_on, self._tables)

    def load(
        self, broker_id: int, partitions: Collection[TopicPartition], state: ReplicaState
    ) -> None:
        """Replace what is known of a broker: these replicas are in that state.

        Args:
            partitions: Nobody changes them any more.
        """
        self._tables[broker_id] = {}
        self._loaded.pop(broker_id, None)
        if partitions:
            self._loaded[broker_id] = _Loaded(iter(partitions), state)

    def set(
        self, broker_id: int, partitions: Iterable[TopicPartition], state: ReplicaState
    ) -> None:
        """Put replicas into a state (not NON_EXISTENT)."""
        states = self._table(broker_id)
        if states is None:
            states = self._tables[broker_id] = {}
        states.update(dict.fromkeys(partitions, state))

    def remove(self, broker_id: int, tp: TopicPartition) -> None:
        """A replica is not known any more."""
        states = self._table(broker_id)
        if states is not None:
            states.pop(tp, None)

    def tabulate_some(self, most: int) -> bool:
        """Make some of the tables that are missing; whether there are more.

        Args:
            most: How many replicas are looked at.
        """
        for broker_id, loaded in self._loaded.items():
            some = dict.fromkeys(islice(loaded.partitions, most), loaded.state)
            self._tables[broker_id].update(some)
            if len(some) < most:
                del self._loaded[broker_id]
            break
        return bool(self._loaded)

    def _table(self, broker_id: int) -> dict[TopicPartition, ReplicaState] | None:
        states = self._tables.get(broker_id)
        loaded = self._loaded.pop(broker_id, None) if self._loaded else None
        if states is not None and loaded is not None:
            states.update(dict.fromkeys(loaded.partitions, loaded.state))
        return states


class _Loaded:
    """Replicas in one state that are in no table yet."""

    __slots__ = ("partitions", "state")

    def __init__(self, partitions: Iterator[TopicPartition], state: ReplicaState) -> None:
        self.partitions = partitions
        self.state = state

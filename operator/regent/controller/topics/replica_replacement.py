"""Replicas on brokers that do not exist get other brokers: what assignments become, purely.

Whatever creates topics beside the controller places replicas on everything that looks like a
broker: on the controller, too, where that is announced.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence

from regent.admin.replica_assignment import BrokerRack
from regent.model.partition import ReplicaAssignment


def replace_replicas(
    assignments: Mapping[int, ReplicaAssignment],
    *,
    phantoms: Collection[int],
    brokers: Sequence[BrokerRack],
    loads: Mapping[int, int],
    spare: Sequence[BrokerRack] = (),
    full: Sequence[BrokerRack] = (),
    unborn: Collection[int] | None = None,
) -> dict[int, ReplicaAssignment]:
    """Assignments of a topic without phantoms, as far as another broker or another replica is left.

    A broker takes a phantom's place whose rack the partition does not use yet, if there is one;
    among these the one that leads (for the preferred leader) or hosts fewest partitions of the
    topic, then of the cluster. If each live broker hosts the partition already, a broker that is
    down takes the place: the topic keeps the number of replicas that was asked for. Without any
    the replica is dropped.

    Args:
        assignments: Of all partitions of the topic.
        phantoms: Ids that are no brokers.
        brokers: The live brokers.
        loads: Replicas in the whole cluster by broker.
        spare: Known brokers that are down.
        full: Brokers that get nothing, and whose racks count where they have replicas already.
        unborn: Partitions that have never had a leader; None: all of them. The others get new
            replicas as by a reassignment. A phantom has no data: it is left out at once.

    Returns:
        The assignments that differ.
    """
    topic = _Topic(assignments.values(), phantoms, (brokers, spare), loads, full=full)
    changed: dict[int, ReplicaAssignment] = {}
    for partition, before in assignments.items():
        if not any(replica in phantoms for replica in before.replicas):
            continue
        replicas, added = topic.replaced(before.replicas, leaving=before.removing_replicas)
        kept = tuple(replica for replica in replicas if replica not in phantoms)
        if not kept:
            continue
        is_unborn = unborn is None or partition in unborn
        changed[partition] = ReplicaAssignment(
            kept,
            () if is_unborn else (*_without(before.adding_replicas, phantoms), *added),
            () if is_unborn else _without(before.removing_replicas, phantoms),
        )
    return changed


class _Topic:
    """Where the replicas of a topic are, while some are replaced."""

    def __init__(
        self,
        assignments: Collection[ReplicaAssignment],
        phantoms: Collection[int],
        choices: Sequence[Sequence[BrokerRack]],
        loads: Mapping[int, int],
        *,
        full: Sequence[BrokerRack],
    ) -> None:
        self._phantoms = phantoms
        self._choices = choices
        self._racks = {b.broker_id: b.rack for brokers in (*choices, full) for b in brokers}
        self._loads = loads
        self._hosted: Counter[int] = Counter()
        self._led: Counter[int] = Counter()
        for assignment in assignments:
            for position, replica in enumerate(assignment.replicas):
                self._count(replica, leads=position == 0)

    def _count(self, replica: int, *, leads: bool) -> None:
        self._hosted[replica] += 1
        self._led[replica] += leads

    def replaced(
        self, replicas: Sequence[int], *, leaving: Collection[int]
    ) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Replicas with others instead of phantoms, and these others. A phantom for which there is
        none stays; one that leaves is dropped."""
        result = [r for r in replicas if not (r in self._phantoms and r in leaving)]
        added: list[int] = []
        for position, replica in enumerate(result):
            if replica not in self._phantoms:
                continue
            chosen = self._choose(result, leads=position == 0)
            if chosen is not None:
                self._count(chosen, leads=position == 0)
                result[position] = chosen
                added.append(chosen)
        return tuple(result), tuple(added)

    def _choose(self, replicas: Sequence[int], *, leads: bool) -> int | None:
        used = {self._racks.get(replica) for replica in replicas} - {None}

        def cost(broker: BrokerRack) -> tuple[bool, int, int, int, int]:
            broker_id = broker.broker_id
            led = self._led[broker_id] if leads else 0
            load = self._loads.get(broker_id, 0)
            return broker.rack in used, led, self._hosted[broker_id], load, broker_id

        for brokers in self._choices:
            candidates = [broker for broker in brokers if broker.broker_id not in replicas]
            if candidates:
                return min(candidates, key=cost).broker_id
        return None


def _without(replicas: Sequence[int], others: Collection[int]) -> tuple[int, ...]:
    return tuple(replica for replica in replicas if replica not in others)

"""A partition as brokers are to see it, with its own encoded bytes.

LeaderAndIsr and UpdateMetadata describe a partition with the same leading fields. These bytes are
made once in the life of a value and joined into every request that names the partition, to whomever
and whenever it goes.
"""

from __future__ import annotations

import struct
from collections.abc import Collection, Sequence
from itertools import repeat
from operator import add, attrgetter
from typing import Final

import msgspec

from regent.model.partition import LeaderAndIsr, ReplicaAssignment
from regent.protocol.primitives import Int32Arrays, pack_int32

_pack_head: Final = struct.Struct(">iiii").pack
_INDEX_SIZE: Final = 4
"""Of a partition's index, with which its bytes begin."""
_KEPT_AT_MOST: Final = 1 << 16
"""Different pairs that a :class:`StateMaker` remembers, and those of one call."""


class PartitionState(msgspec.Struct, frozen=True, gc=False, eq=False):
    """State of one partition. Equal to another one of the same three fields.

    Attributes:
        partition: Index of the partition within its topic.
        leader_and_isr: Its leadership.
        assignment: Its replicas.
        legacy: Encoded fields, see :func:`prefixes_of`; None until they are needed.
        flexible: Likewise, in the flexible encoding (KIP-482).
        is_unusual: Once encoded: whether the partition is being reassigned or has a leader that
            recovers. What follows the fields above in LeaderAndIsr is the same for all others.
    """

    partition: int
    leader_and_isr: LeaderAndIsr
    assignment: ReplicaAssignment
    legacy: bytes | None = None
    flexible: bytes | None = None
    is_unusual: bool = False

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, PartitionState):
            return NotImplemented
        return (self.partition, self.leader_and_isr, self.assignment) == (
            other.partition,
            other.leader_and_isr,
            other.assignment,
        )

    def __hash__(self) -> int:
        return hash((self.partition, self.leader_and_isr))


_legacy_of: Final = attrgetter("legacy")
_flexible_of: Final = attrgetter("flexible")


def prefixes_of(
    states: Sequence[PartitionState], *, flexible: bool, arrays: Int32Arrays | None = None
) -> list[bytes]:
    """Encoded partition index, controller epoch, leader, leader epoch, ISR, partition epoch and
    replicas of each state, in their order. A value keeps them.

    Args:
        arrays: Of the same encoding, for who encodes a few states at a time, again and again.
    """
    found: list[bytes | None] = list(map(_flexible_of if flexible else _legacy_of, states))
    if all(found):
        return found  # type: ignore[return-value]
    if arrays is None:
        arrays = Int32Arrays(flexible=flexible)
    field = "flexible" if flexible else "legacy"
    remember = msgspec.structs.force_setattr
    prefixes: list[bytes] = []
    for state, known in zip(states, found, strict=True):
        if known is None:
            current = state.leader_and_isr
            known = (
                _pack_head(
                    state.partition,
                    current.controller_epoch,
                    current.leader,
                    current.leader_epoch,
                )
                + arrays[current.isr]
                + pack_int32(current.partition_epoch)
                + arrays[state.assignment.replicas]
            )
            # before the bytes: another thread that finds these does not look any further
            if _is_unusual(current, state.assignment):
                remember(state, "is_unusual", True)
            remember(state, field, known)
        prefixes.append(known)
    return prefixes


def _is_unusual(current: LeaderAndIsr, assignment: ReplicaAssignment) -> bool:
    return bool(
        assignment.adding_replicas or assignment.removing_replicas or current.leader_recovery_state
    )


class StateMaker:
    """Makes values with their bytes in the flexible encoding, many at a time.

    A cluster that was just read has one object for equal leaderships, and one for equal
    assignments, and few of either. So all but the partition's index is encoded once for a pair of
    them, which is found by what the objects are, not by what they hold.
    """

    def __init__(self) -> None:
        self._arrays = Int32Arrays(flexible=True)
        self._indexes = _Indexes()
        self._forget()

    def _forget(self) -> None:
        self._ends: dict[tuple[int, int], bytes] = {}
        self._unusual: dict[tuple[int, int], None] = {}
        self._kept: list[object] = []  # as long as they live, no others have their ids

    def make(
        self,
        partitions: Sequence[int],
        leaderships: Sequence[LeaderAndIsr],
        assignments: Collection[ReplicaAssignment],
    ) -> list[PartitionState]:
        """Values of partitions by their indexes, each encoded as by :func:`prefixes_of`."""
        if len(self._ends) > _KEPT_AT_MOST:
            self._forget()
        pairs = list(zip(map(id, leaderships), map(id, assignments), strict=True))
        ends = list(map(self._ends.get, pairs))
        if not all(ends):
            for pair, current, assignment in zip(pairs, leaderships, assignments, strict=True):
                if pair not in self._ends:
                    self._add(pair, current, assignment)
            ends = list(map(self._ends.get, pairs))
        prefixes = map(add, map(self._indexes.__getitem__, partitions), ends)
        unusual = map(self._unusual.__contains__, pairs) if self._unusual else repeat(False)
        return list(
            map(
                PartitionState,
                partitions,
                leaderships,
                assignments,
                repeat(None),
                prefixes,
                unusual,
            )
        )

    def _add(
        self, pair: tuple[int, int], current: LeaderAndIsr, assignment: ReplicaAssignment
    ) -> None:
        (encoded,) = prefixes_of(
            [PartitionState(0, current, assignment)], flexible=True, arrays=self._arrays
        )
        self._ends[pair] = encoded[_INDEX_SIZE:]
        self._kept += (current, assignment)
        if _is_unusual(current, assignment):
            self._unusual[pair] = None


class _Indexes(dict[int, bytes]):
    """Encoded partition indexes."""

    def __missing__(self, index: int) -> bytes:
        encoded = self[index] = pack_int32(index)
        return encoded

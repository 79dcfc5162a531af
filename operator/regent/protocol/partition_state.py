"""A partition as brokers are to see it, with its own encoded bytes.

LeaderAndIsr and UpdateMetadata describe a partition with the same leading fields. These bytes are
made once in the life of a value and joined into every request that names the partition, to whomever
and whenever it goes.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from operator import attrgetter
from typing import Final

import msgspec

from regent.model.partition import LeaderAndIsr, ReplicaAssignment
from regent.protocol.primitives import Int32Arrays, pack_int32

_pack_head: Final = struct.Struct(">iiii").pack


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
            remember(state, field, known)
            assignment = state.assignment
            if (
                assignment.adding_replicas
                or assignment.removing_replicas
                or current.leader_recovery_state
            ):
                remember(state, "is_unusual", True)
        prefixes.append(known)
    return prefixes

"""Leader elections as pure functions of assignment, ISR and liveness.

Source: ``Election.scala``, ``PartitionLeaderElectionAlgorithms``. All iterate in the order of the
assignment, so that the preferred leader wins whenever it may. None knows about epochs: the caller
raises the leader epoch with every result.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from regent.model.partition import LeaderRecoveryState


class Elected(NamedTuple):
    """Result of an election.

    Attributes:
        leader: The new leader.
        isr: The new ISR.
        leader_recovery_state: RECOVERING after an unclean election where the protocol knows it.
        unclean: Whether the leader comes from outside the ISR: committed records may be lost.
    """

    leader: int
    isr: tuple[int, ...]
    leader_recovery_state: int
    unclean: bool = False


def offline(
    assignment: tuple[int, ...],
    isr: tuple[int, ...],
    live: Collection[int],
    *,
    recovery_state: int,
    unclean_enabled: bool,
    marks_recovery: bool,
) -> Elected | None:
    """The leader is gone: the first live replica in the ISR, or with ``unclean_enabled`` any.

    Args:
        live: Live brokers on whose log directories the replica is readable.
        recovery_state: Present leader recovery state, kept by a clean election.
        marks_recovery: Whether brokers know RECOVERING (inter.broker.protocol.version >= 3.2).
    """
    leader = next((r for r in assignment if r in live and r in isr), None)
    if leader is not None:
        return Elected(leader, tuple(r for r in isr if r in live), recovery_state)
    if not unclean_enabled:
        return None
    leader = next((r for r in assignment if r in live), None)
    if leader is None:
        return None
    recovering = LeaderRecoveryState.RECOVERING if marks_recovery else recovery_state
    return Elected(leader, (leader,), int(recovering), unclean=True)


def reassign(
    target: tuple[int, ...], isr: tuple[int, ...], live: Collection[int], *, recovery_state: int
) -> Elected | None:
    """The reassignment is done: the first *target* replica that is live and in the ISR."""
    leader = next((r for r in target if r in live and r in isr), None)
    return None if leader is None else Elected(leader, isr, recovery_state)


def preferred(
    assignment: tuple[int, ...], isr: tuple[int, ...], live: Collection[int], *, recovery_state: int
) -> Elected | None:
    """The first replica of the assignment, if it is live and in the ISR."""
    if not assignment or assignment[0] not in live or assignment[0] not in isr:
        return None
    return Elected(assignment[0], isr, recovery_state)


def controlled_shutdown(
    assignment: tuple[int, ...],
    isr: tuple[int, ...],
    live_or_shutting_down: Collection[int],
    shutting_down: Collection[int],
    *,
    recovery_state: int,
) -> Elected | None:
    """The leader is about to stop: the first in-sync replica that is not itself shutting down."""
    leader = next(
        (
            r
            for r in assignment
            if r in live_or_shutting_down and r in isr and r not in shutting_down
        ),
        None,
    )
    if leader is None:
        return None
    return Elected(leader, tuple(r for r in isr if r not in shutting_down), recovery_state)


class ElectionStrategy(NamedTuple):
    """Which election, with what flags.

    Attributes:
        name: "offline", "reassign", "preferred" or "controlled_shutdown".
        allow_unclean: For "offline": asked for explicitly (ElectLeaders UNCLEAN), regardless of
            the topic's configuration.
    """

    name: str
    allow_unclean: bool = False


OFFLINE = ElectionStrategy("offline")
OFFLINE_ALLOW_UNCLEAN = ElectionStrategy("offline", allow_unclean=True)
REASSIGN = ElectionStrategy("reassign")
PREFERRED = ElectionStrategy("preferred")
CONTROLLED_SHUTDOWN = ElectionStrategy("controlled_shutdown")

"""Leader elections: pure functions of assignment, ISR and liveness, and the strategies over them.

Source: ``Election.scala``, ``PartitionLeaderElectionAlgorithms``. All iterate in the order of the
assignment, so that the preferred leader wins whenever it may. None knows about epochs: the caller
raises the leader epoch with every result.
"""

from __future__ import annotations

import abc
import enum
from collections.abc import Collection
from typing import ClassVar, Final, NamedTuple

from regent.controller.state.causes import ChangeKind
from regent.model.partition import LeaderRecoveryState, ReplicaAssignment


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
    live_or_shutting_down: Collection[int] = (),
) -> Elected | None:
    """The leader is gone: the first live replica in the ISR, or with ``unclean_enabled`` any.

    Where all that is left of the ISR is shutting down, the first of those leads once more: it
    serves until it stops, and nothing is lost meanwhile. (Upstream leaves the partition offline, or
    elects from outside the ISR.)

    Args:
        live: Live brokers that are not shutting down, on whose log directories the replica is
            readable.
        live_or_shutting_down: The same with those that are shutting down.
        recovery_state: Present leader recovery state, kept by a clean election.
        marks_recovery: Whether brokers know RECOVERING (inter.broker.protocol.version >= 3.2).
    """
    leader = next((r for r in assignment if r in live and r in isr), None)
    if leader is not None:
        return Elected(leader, tuple(r for r in isr if r in live), recovery_state)
    leader = next((r for r in assignment if r in live_or_shutting_down and r in isr), None)
    if leader is not None:
        return Elected(leader, tuple(r for r in isr if r in live_or_shutting_down), recovery_state)
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


class UncleanElection(enum.Enum):
    """Whether a replica outside the ISR may become leader when no ISR member is live."""

    NEVER = "never"
    AS_CONFIGURED = "as configured"
    """By unclean.leader.election.enable of the topic, or of the cluster."""
    ALWAYS = "always"
    """Asked for explicitly (ElectLeaders UNCLEAN), whatever the configuration says."""


class ElectionInput(NamedTuple):
    """What the election of one partition is decided by.

    Attributes:
        assignment: Its replicas, the preferred leader first.
        leader: Its present leader, live or not; negative if it has none.
        isr: Its ISR in the order of its state znode.
        recovery_state: Its present leader recovery state.
        live: Assigned replicas on live brokers that are not shutting down, on good log directories.
        live_or_shutting_down: The same with those on brokers that are shutting down.
        shutting_down: Brokers that are shutting down.
        unclean_enabled: Whether the leader may come from outside the ISR.
        marks_recovery: Whether brokers know RECOVERING (inter.broker.protocol.version >= 3.2).
    """

    assignment: ReplicaAssignment
    leader: int
    isr: tuple[int, ...]
    recovery_state: int
    live: tuple[int, ...]
    live_or_shutting_down: tuple[int, ...]
    shutting_down: Collection[int]
    unclean_enabled: bool
    marks_recovery: bool


class ElectionStrategy(abc.ABC):
    """How to elect, and whom to send the result.

    Attributes:
        name: Names the strategy in logs and reasons.
        change: What a result from the ISR is in the state-change trail.
        unclean: Whether the leader may come from outside the ISR.
    """

    name: ClassVar[str]
    change: ClassVar[ChangeKind]
    unclean: UncleanElection = UncleanElection.NEVER

    @abc.abstractmethod
    def elect(self, given: ElectionInput) -> Elected | None:
        """The new leader and ISR, or None if no replica is eligible."""

    @abc.abstractmethod
    def recipients(self, given: ElectionInput) -> tuple[int, ...]:
        """The brokers that get a LeaderAndIsr of the result."""


class OfflineElection(ElectionStrategy):
    """The leader is gone, or there never was one: :func:`offline`."""

    name = "offline"
    change = ChangeKind.ELECTED_OFFLINE

    def __init__(self, unclean: UncleanElection = UncleanElection.AS_CONFIGURED) -> None:
        self.unclean = unclean

    def elect(self, given: ElectionInput) -> Elected | None:
        return offline(
            given.assignment.replicas,
            given.isr,
            given.live,
            recovery_state=given.recovery_state,
            unclean_enabled=given.unclean_enabled,
            marks_recovery=given.marks_recovery,
            live_or_shutting_down=given.live_or_shutting_down,
        )

    def recipients(self, given: ElectionInput) -> tuple[int, ...]:
        """Live replicas. One that is shutting down only where such a one is to lead: it would
        begin to fetch again."""
        if len(given.live) == len(given.live_or_shutting_down) or any(
            r in given.isr for r in given.live
        ):
            return given.live
        return tuple(r for r in given.live_or_shutting_down if r in given.live or r in given.isr)


class ReassignElection(ElectionStrategy):
    """The target replicas of a reassignment are in sync, and the leader is none of them, or dead:
    :func:`reassign`."""

    name = "reassign"
    change = ChangeKind.ELECTED_REASSIGN

    def elect(self, given: ElectionInput) -> Elected | None:
        target = given.assignment.target_replicas
        return reassign(target, given.isr, given.live, recovery_state=given.recovery_state)

    def recipients(self, given: ElectionInput) -> tuple[int, ...]:
        return given.assignment.target_replicas


class PreferredElection(ElectionStrategy):
    """The first replica of the assignment is to lead: :func:`preferred`."""

    name = "preferred"
    change = ChangeKind.ELECTED_PREFERRED

    def elect(self, given: ElectionInput) -> Elected | None:
        replicas = given.assignment.replicas
        return preferred(replicas, given.isr, given.live, recovery_state=given.recovery_state)

    def recipients(self, given: ElectionInput) -> tuple[int, ...]:
        return given.assignment.replicas


class ControlledShutdownElection(ElectionStrategy):
    """The leader is about to stop: :func:`controlled_shutdown`. It is informed, too."""

    name = "controlled_shutdown"
    change = ChangeKind.ELECTED_CONTROLLED_SHUTDOWN

    def elect(self, given: ElectionInput) -> Elected | None:
        return controlled_shutdown(
            given.assignment.replicas,
            given.isr,
            given.live_or_shutting_down,
            given.shutting_down,
            recovery_state=given.recovery_state,
        )

    def recipients(self, given: ElectionInput) -> tuple[int, ...]:
        return given.live_or_shutting_down


OFFLINE: Final = OfflineElection()
OFFLINE_CLEANLY: Final = OfflineElection(UncleanElection.NEVER)
OFFLINE_ALLOW_UNCLEAN: Final = OfflineElection(UncleanElection.ALWAYS)
REASSIGN: Final = ReassignElection()
PREFERRED: Final = PreferredElection()
CONTROLLED_SHUTDOWN: Final = ControlledShutdownElection()

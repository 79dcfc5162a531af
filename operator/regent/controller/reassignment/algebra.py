"""What a reassignment makes of a partition's replica lists: pure functions of values.

The origin of an assignment are its replicas without the ones being added, its target those without
the ones being removed. A reassignment goes from the origin to a new target; what was being added
for an older target is forgotten.

Source: KIP-455, ``ReplicaAssignment`` in ``ControllerContext.scala``.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from regent.model.partition import ReplicaAssignment


def origin_of(assignment: ReplicaAssignment) -> tuple[int, ...]:
    """Replicas without the ones being added. Their order is that of the last target: of an older
    one nothing is known."""
    return _without(assignment.replicas, assignment.adding_replicas)


def reassign_to(assignment: ReplicaAssignment, target: Sequence[int]) -> ReplicaAssignment:
    """The assignment on its way to ``target``, which lists brokers without repetition.

    Going back to the origin, in whatever order, is not being reassigned any more.
    """
    origin = origin_of(assignment)
    wanted = tuple(target)
    return ReplicaAssignment(
        replicas=wanted + _without(origin, wanted),
        adding_replicas=_without(wanted, origin),
        removing_replicas=_without(origin, wanted),
    )


def cancelled(assignment: ReplicaAssignment) -> ReplicaAssignment:
    """The assignment back at its origin."""
    return reassign_to(assignment, origin_of(assignment))


def completed(assignment: ReplicaAssignment) -> ReplicaAssignment:
    """The assignment at its target."""
    return ReplicaAssignment(assignment.target_replicas)


def is_complete(assignment: ReplicaAssignment, isr: Collection[int]) -> bool:
    """Whether every target replica is in sync, so that the others may go."""
    return all(replica in isr for replica in assignment.target_replicas)


def replicas_lost(before: ReplicaAssignment, after: ReplicaAssignment) -> tuple[int, ...]:
    """Replicas that were being added for a target that is no longer wanted."""
    return _without(before.replicas, after.replicas)


def target_problem(target: Sequence[int]) -> str | None:
    """Why a list of brokers cannot be a target, or None."""
    if not target:
        return "the replica list is empty"
    if len(frozenset(target)) < len(target):
        return f"a broker is twice in the replica list {list(target)}"
    if min(target) < 0:
        return f"the replica list {list(target)} has a negative broker id"
    return None


def _without(replicas: Sequence[int], others: Collection[int]) -> tuple[int, ...]:
    return tuple(replica for replica in replicas if replica not in others)

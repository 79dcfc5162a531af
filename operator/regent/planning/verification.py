"""Whether a plan keeps to its task.

A plan that comes over a network may be somebody else's than the planner's: whoever reads Secrets in
the namespace of a job can answer in its place. What the namespace may not do, such a plan must not.
How good it is does not count here.
"""

from __future__ import annotations

from collections.abc import Iterator

from regent.planning.goals import PlannerGoals
from regent.planning.results import PlannedChanges, PlannerFailed, PlanResult


def verified(result: PlanResult, goals: PlannerGoals) -> PlanResult:
    """The result, or a failure in the place of a plan that does what its goals forbid: that moves a
    pinned topic, uses drained or excluded brokers, or changes numbers of replicas."""
    if not isinstance(result, PlannedChanges):
        return result
    problem = next(_problems(result, goals), None)
    return result if problem is None else PlannerFailed(f"its plan {problem}")


def _problems(plan: PlannedChanges, goals: PlannerGoals) -> Iterator[str]:
    pinned, drained, excluded = (
        frozenset(each) for each in (goals.pinned, goals.drained, goals.excluded)
    )
    seen: set[tuple[str, int]] = set()
    for topic, partition, previous, replicas, _ in plan.changes:
        name = f"{topic}-{partition}"
        if (topic, partition) in seen:
            yield f"has {name} twice"
        seen.add((topic, partition))
        if topic in pinned:
            yield f"moves {name}, a topic that is to stay"
        if len(replicas) != len(previous):
            yield f"gives {name} {len(replicas)} replicas in the place of {len(previous)}"
        if len({*replicas}) != len(replicas):
            yield f"has a broker twice for {name}"
        for broker in replicas:
            if broker in drained:
                yield f"leaves a replica of {name} on broker {broker}, which is to be drained"
            elif broker in excluded and broker not in previous:
                yield f"puts a replica of {name} on broker {broker}, which is excluded"

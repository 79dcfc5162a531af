"""Whether a plan keeps to its task.

A plan that comes over a network might not be the planner's: a user who can read Secrets in the
namespace of a job can answer in its place. So the topic of each change is checked against the rules
of the namespace, also a topic that was created after the snapshot and is therefore not pinned. The
quality of a plan does not count here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from regent.planning.goals import PlannerGoals
from regent.planning.results import PlannedChanges, PlannerFailed, PlanResult


def verified(
    result: PlanResult, goals: PlannerGoals, may_move: Callable[[str], bool]
) -> PlanResult:
    """Return the result, or a failure instead of a plan that breaks its task: a plan that moves a
    forbidden or pinned topic, uses drained or excluded brokers, or changes numbers of replicas.

    Args:
        may_move: Whether the namespace of the resource may move a topic.
    """
    if not isinstance(result, PlannedChanges):
        return result
    problem = next(_problems(result, goals, may_move), None)
    return result if problem is None else PlannerFailed(f"its plan {problem}")


def _problems(
    plan: PlannedChanges, goals: PlannerGoals, may_move: Callable[[str], bool]
) -> Iterator[str]:
    pinned, drained, excluded = (
        frozenset(each) for each in (goals.pinned, goals.drained, goals.excluded)
    )
    seen: set[tuple[str, int]] = set()
    for topic, partition, previous, replicas, _ in plan.changes:
        name = f"{topic}-{partition}"
        if (topic, partition) in seen:
            yield f"has {name} twice"
        seen.add((topic, partition))
        if not may_move(topic):
            yield (
                f"moves {name}, a topic that topic_name_rules do not let the namespace move; find "
                "out who has handed it in"
            )
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

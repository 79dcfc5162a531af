"""Kubernetes Events for changes of conditions."""

from __future__ import annotations

from collections.abc import Sequence

from regent.reconcile.plan import PlannedEvent
from regent.resources.conditions import (
    Condition,
    ConditionStatus,
    ConditionType,
    find_condition,
)


def transition_events(
    before: Sequence[Condition], after: Sequence[Condition]
) -> tuple[PlannedEvent, ...]:
    """Warnings for what has just gone wrong: Stalled became True or True for another reason, or
    Healthy became False. Comparing with the stored conditions keeps a restart silent.
    """
    events: list[PlannedEvent] = []
    for type_, bad in (
        (ConditionType.STALLED, ConditionStatus.TRUE),
        (ConditionType.HEALTHY, ConditionStatus.FALSE),
    ):
        new, old = find_condition(after, type_), find_condition(before, type_)
        if new is None or new.status is not bad:
            continue
        is_news = old is None or old.status is not bad or old.reason != new.reason
        # A topic that is just being born is never healthy: nothing to warn of.
        if is_news and not (type_ is ConditionType.HEALTHY and old is None):
            events.append(PlannedEvent(new.reason, new.message, is_warning=True))
    return tuple(events)

"""The state-change trail tells the truth: what changed, each step of it, and why."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from regent.controller.state.causes import CauseKind, ChangeKind
from regent.controller.state.context import ControllerContext
from regent.controller.state.state_change_trail import PartitionTrail, StateChange, StateChangeTrail
from regent.model.partition import LeaderAndIsr, TopicPartition
from tests.simulation.trace import require

if TYPE_CHECKING:
    from tests.simulation.driver import RegentProcess
    from tests.simulation.world import World

_WRITTEN_BY_THE_CONTROLLER = frozenset(ChangeKind) - {ChangeKind.OBSERVED, ChangeKind.UNREADABLE}


class TrailChecker:
    """Compares trails with leadership at the end of every event."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._last: dict[str, tuple[ControllerContext, dict[TopicPartition, LeaderAndIsr]]] = {}
        self._checked: dict[str, dict[TopicPartition, PartitionTrail]] = {}

    def event_ended(self, process: RegentProcess, context: ControllerContext) -> None:
        """A process has processed an event and is the controller."""
        self._check_nothing_is_missing(process, context)
        checked = self._checked.get(process.name, {})
        self._checked[process.name] = dict(context.trail.partitions)
        for tp, trail in context.trail.partitions.items():
            now = context.cluster.leadership.get(tp)
            require(trail.now == now, f"{process}: the trail of {tp} ends with {trail.now}: {now}")
            if checked.get(tp) is trail:
                continue
            earlier = (trail.before, *(change.after for change in trail.changes))
            for (before, _), change in zip(pairwise(earlier), trail.changes, strict=True):
                self._check_change(process, tp, before, change)
        self._check_brokers(process, context.trail)

    def _check_nothing_is_missing(self, process: RegentProcess, context: ControllerContext) -> None:
        """What the event has changed is the last change of a trail, and names the event."""
        before, known = self._last.get(process.name, (None, {}))
        leadership = dict(context.cluster.leadership)
        self._last[process.name] = (context, leadership)
        if before is not context:
            return
        changed = [tp for tp, state in leadership.items() if known.get(tp) != state]
        for tp in changed:
            trail = context.trail.partitions.get(tp)
            event = None if trail is None else trail.changes[-1].cause.event
            expected = type(process.event).__name__
            require(event == expected, f"{process}: the trail of {tp} has {event}, not {expected}")

    def _check_change(
        self,
        process: RegentProcess,
        tp: TopicPartition,
        before: LeaderAndIsr | None,
        change: StateChange,
    ) -> None:
        after, kind = change.after, change.kind
        what = f"{process}: the trail of {tp} has {kind} from {before} to {after}"
        require(before != after, what)
        if after is None or kind not in _WRITTEN_BY_THE_CONTROLLER:
            return
        if before is None:
            require(kind is ChangeKind.FIRST_LEADER, f"{what}: a step is missing")
            return
        removed = tp.topic in self._world.safety.seen.removed_by_hand  # its epochs are made up for
        is_next = after.partition_epoch == before.partition_epoch + 1
        require(is_next or removed, f"{what}: a step is missing")
        is_unclean = after.leader >= 0 and after.leader not in before.isr
        is_said = kind is ChangeKind.ELECTED_UNCLEAN
        require(is_unclean == is_said, f"{what}: a leader from outside the ISR, or not?")

    def _check_brokers(self, process: RegentProcess, trail: StateChangeTrail) -> None:
        for broker_id, cause in trail.broker_causes.items():
            (life,) = (life for life in cause.brokers if life.broker_id == broker_id)
            by_hand = broker_id in self._world.safety.seen.unregistered_by_hand
            is_alive = self._world.zookeeper.is_alive(life.session_id)
            require(
                self._world.owner_of(life.session_id) == f"broker-{broker_id}"
                and not (is_alive and cause.kind is CauseKind.BROKER_FAILED and not by_hand),
                f"{process}: the trail names {life} for {cause.kind}",
            )

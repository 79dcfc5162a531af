"""The pace of throttles that adapt: what the rules need to know, put together."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from regent.controller.view import ClusterView, PartitionView
from regent.kube.lagging_partitions import LaggingPartitions
from regent.kube.latency_watch import LatencyWatch
from regent.kube.metrics import ResourceMetrics
from regent.model.partition import TopicPartition
from regent.reconcile.reassignments.move_plan import MovePlan
from regent.reconcile.reassignments.pacing import (
    Pace,
    Signals,
    first_pace,
    held_pace,
    next_pace,
)
from regent.resources.partition_reassignment import AdaptiveThrottle, Throttle


@dataclass(frozen=True, slots=True)
class PaceKeeper:
    """Says how fast resources copy whose throttle adapts.

    Attributes:
        lagging: Which partitions lack replicas in sync.
        latency: How long brokers take to answer.
        metrics: Counts how often copies that are under way get another rate.
    """

    lagging: LaggingPartitions
    latency: LatencyWatch
    metrics: ResourceMetrics

    def pace(
        self,
        throttle: Throttle | None,
        before: Pace | None,
        *,
        view: ClusterView,
        plan: MovePlan | None,
        moving: Mapping[TopicPartition, PartitionView],
        at: float,
    ) -> Pace | None:
        """The present pace of a resource; None: its throttle does not adapt, or nothing can be said
        yet.

        Args:
            before: What this has returned for the resource the last time; None: nothing yet.
            plan: What it moves; None: nothing.
            moving: What moves in the cluster.
            at: Monotonic seconds.
        """
        bounds = None if throttle is None else throttle.adaptive
        if bounds is None:
            return None
        if not (view.may_act and view.is_complete):
            # Not even the former one: another Regent may have changed the rate when the cluster is
            # known again, and that all was well meanwhile nobody knows. What is found counts then.
            return None
        moves = () if plan is None else plan.moves
        under_way = [moving[move.tp] for move in moves if move.tp in moving]
        signals = self._signals(bounds, view, under_way)
        if before is None:
            # Who was there before may have been in the middle of a change: the lowest counts, as it
            # does for the brokers.
            rates = (each.throttle for each in under_way if each.throttle is not None)
            return first_pace(bounds, signals, present=min(rates, default=None), at=at)
        if not under_way:
            return held_pace(before, bounds, signals, at=at)
        after = next_pace(before, bounds, signals, at=at)
        self.metrics.throttle_changed(before.rate, after.rate)
        return after

    def _signals(
        self, bounds: AdaptiveThrottle, view: ClusterView, under_way: Collection[PartitionView]
    ) -> Signals:
        latencies: Mapping[int, float] = {}
        if bounds.maximum_latency_milliseconds is not None:
            brokers = {b for each in under_way for b in (each.leader, *each.adding_replicas)}
            latencies = self.latency.follow(brokers)
        lagging = self.lagging.look(view)
        slowest = max(latencies, key=lambda broker: (latencies[broker], broker), default=None)
        return Signals(
            lagging=lagging.total,
            example=lagging.example,
            shrinks=self.lagging.shrinks,
            latency_s=None if slowest is None else latencies[slowest],
            slowest=slowest,
        )

"""A PartitionReassignment that is planned again and again, as it goes through its phases."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from regent.controller.view import ClusterView
from regent.reconcile.reassignments.claims import ReassignmentClaim, claim_of, moved_by_others
from regent.reconcile.reassignments.execution import ReassignmentPlan
from regent.reconcile.reassignments.planning import plan_reassignment
from regent.reconcile.reassignments.request import ReassignmentRequest
from regent.reconcile.reassignments.transitions import transition_events
from regent.resources.conditions import ConditionType, find_condition
from regent.resources.partition_reassignment import (
    PartitionReassignment,
    parse_partition_reassignment,
)
from regent.resources.partition_reassignment_status import PartitionReassignmentStatus, Phase
from tests.support.present import present
from tests.unit.reconcile.drains.draining import Cluster, Settling
from tests.unit.reconcile.reassignments.reassigning import AUTOMATIC, assign
from tests.unit.reconcile.requests import MONOTONIC_S, NOW

BEFORE = [(1, 2), (2, 3), (3, 1), (1, 2)]
TARGETS = [(3, 2), (4, 3), (3, 4), (2, 1)]


class Job(Settling):
    """A PartitionReassignment with the status that was stored last. Nothing else is remembered.

    Attributes:
        after_s: The present, in seconds.
        events: So far.
    """

    def __init__(self, cluster: Cluster, *, name: str = "job", **spec: Any) -> None:
        self.cluster = cluster
        self.name = name
        self.generation = 1
        self.spec: dict[str, Any] = {
            "approval": AUTOMATIC,
            "assignments": assign(*TARGETS, topic="t"),
            **spec,
        }
        self.status: PartitionReassignmentStatus = PartitionReassignmentStatus()
        self.after_s = 0.0
        self.others: list[ReassignmentClaim] = []
        self.seen: ClusterView | None = None
        self.events: list[str] = []
        self._is_deleted = False
        self._requeue_after_s: float | None = None

    @property
    def body(self) -> dict[str, Any]:
        return {
            "metadata": {
                "name": self.name,
                "namespace": "shop",
                "uid": f"uid-{self.name}",
                "generation": self.generation,
                "creationTimestamp": "2026-05-01T10:00:00Z",
            },
            "spec": self.spec,
            "status": self.status.to_api(),
        }

    @property
    def resource(self) -> PartitionReassignment:
        parsed = parse_partition_reassignment(self.body)
        assert isinstance(parsed, PartitionReassignment), parsed
        return parsed

    @property
    def claim(self) -> ReassignmentClaim | None:
        return claim_of(self.body)

    def request(self) -> ReassignmentRequest:
        view, resource = self.seen or self.cluster.view, self.resource
        return ReassignmentRequest(
            resource=resource,
            view=view,
            topics=("t",),
            configs=self.cluster.configs,
            moving=self.cluster.moving(),
            sent={},
            refused={},
            moved_by_others=moved_by_others(resource, self.others, cluster_id=view.cluster_id),
            seen_at=MONOTONIC_S,
            monotonic_s=MONOTONIC_S,
            now=NOW + timedelta(seconds=self.after_s),
        )

    def plan(self) -> ReassignmentPlan:
        return plan_reassignment(self.request())

    def change(self, **spec: Any) -> None:
        self.spec |= spec
        self.generation += 1

    def round(self) -> bool:
        plan = self.plan()
        self._is_deleted, self._requeue_after_s = plan.is_to_be_deleted, plan.requeue_after_s
        for command in () if plan.status_first else plan.commands:
            self.cluster.carry_out(command)
        if plan.status is None or plan.status == self.status:
            return bool(plan.commands)
        self.events += [each.reason for each in transition_events(self.status, plan.status)]
        self.status = plan.status
        return True

    def is_in(self, phase: Phase) -> bool:
        return self.status.phase is phase

    def is_deleted(self) -> bool:
        """Whether Regent has deleted it in the last round."""
        return self._is_deleted

    def requeues_after_s(self) -> float | None:
        """When it is looked at again after the last round."""
        return self._requeue_after_s

    @property
    def message(self) -> str:
        ready = present(find_condition(self.status.conditions, ConditionType.READY))
        return ready.message


def completed(**spec: Any) -> Job:
    job = Job(Cluster({"t": BEFORE}), **spec)
    job.finish()
    assert job.is_in(Phase.COMPLETED)
    assert job.cluster.replicas("t") == TARGETS
    return job

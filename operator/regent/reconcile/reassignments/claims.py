"""Which of several reassignments moves a partition that all of them name.

Where a partition is says how far a plan is. So two plans that want it in two places would move it
back and forth while both have something left to do. Only the one that began first moves it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from regent.model.partition import TopicPartition
from regent.reconcile.reassignments.move_plan import MovePlan, PlanDocumentError, read_plan
from regent.resources.partition_reassignment import DesiredState, PartitionReassignment
from regent.resources.partition_reassignment_status import Phase

_MOVES_NOTHING: Final = (Phase.STOPPED, Phase.INCOMPLETE)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReassignmentClaim:
    """A plan that is being executed.

    Attributes:
        cluster_id: Id of the Kafka cluster that it is for.
        started_at: As its status has it; that of the undoing if it is being undone. RFC 3339 in
            UTC, so that the texts sort by time.
        document: The stored plan, ``plan_hash`` its hash.
        is_paused: Whether nothing of it begins to move before somebody says so.
        goes_back: Whether it is being undone.
    """

    namespace: str
    name: str
    uid: str
    cluster_id: str | None
    started_at: str
    plan_hash: str
    document: str
    is_paused: bool = False
    goes_back: bool = False

    @property
    def plan(self) -> MovePlan | None:
        """The plan; None if it cannot be read: it is not executed then."""
        try:
            return read_plan(self.document, expected_hash=self.plan_hash)
        except PlanDocumentError:
            return None

    @property
    def partitions(self) -> frozenset[TopicPartition]:
        """Those of its plan; none if it cannot be read."""
        plan = self.plan
        return frozenset() if plan is None else plan.partitions

    @property
    def order(self) -> tuple[str, str]:
        """Sorts claims: of several to a partition the smallest moves it."""
        return (self.started_at, self.uid)

    def goes_before(self, resource: PartitionReassignment) -> bool:
        """Whether a resource leaves the partitions of this plan alone."""
        uid, started_at = resource.metadata.uid, resource.status.begun_at
        if self.uid == uid:
            return False
        if resource.spec.desired_state is DesiredState.CANCELLED:
            return True  # it has no claim any more
        return started_at is None or self.order < (started_at, uid)

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


def claim_of(body: Mapping[str, Any]) -> ReassignmentClaim | None:
    """The claim of an object of the API; None if it begins no move as it is."""
    metadata, spec, status = body["metadata"], body.get("spec"), body["status"]
    plan = status.get("plan")
    started_at = status.get("undoStartedAt") or status.get("startedAt")
    if not isinstance(plan, Mapping) or not isinstance(started_at, str):
        return None
    is_over = "finishedAt" in status or "deletionTimestamp" in metadata
    state = spec.get("desiredState") if isinstance(spec, Mapping) else None
    if is_over or state == DesiredState.CANCELLED or status.get("phase") in _MOVES_NOTHING:
        return None
    return ReassignmentClaim(
        namespace=metadata.get("namespace", ""),
        name=metadata["name"],
        uid=metadata.get("uid", ""),
        cluster_id=status.get("clusterId"),
        started_at=started_at,
        plan_hash=str(plan.get("hash")),
        document=str(plan.get("document")),
        is_paused=state == DesiredState.PAUSED or status.get("phase") == Phase.PAUSED,
        goes_back="undoStartedAt" in status,
    )


def moved_by_others(
    resource: PartitionReassignment,
    claims: Iterable[ReassignmentClaim],
    *,
    cluster_id: str | None,
) -> dict[TopicPartition, str]:
    """The partitions that a resource leaves alone, each with the resource that moves it."""
    before = (claim for claim in claims if claim.goes_before(resource))
    return moved_partitions(before, cluster_id=cluster_id)


def moved_partitions(
    claims: Iterable[ReassignmentClaim], *, cluster_id: str | None
) -> dict[TopicPartition, str]:
    """Partitions of a cluster that are claimed, each with the resource that moves it: the first."""
    known = {claim.uid: claim for claim in claims if claim.cluster_id == cluster_id}
    ordered = sorted(known.values(), key=lambda claim: claim.order, reverse=True)
    return {tp: str(claim) for claim in ordered for tp in claim.partitions}

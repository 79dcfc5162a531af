"""PartitionReassignment as a kind that is served."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from regent.reconcile.kinds import KindDescriptor
from regent.reconcile.reassignments.claims import ReassignmentClaim, claim_of
from regent.reconcile.reassignments.move_plan import PlanDocumentError, read_plan
from regent.reconcile.reassignments.sources import topics_of
from regent.resources.base import field_names
from regent.resources.kafka_topic import FINALIZER
from regent.resources.partition_reassignment import (
    PartitionReassignment,
    PartitionReassignmentSpec,
    UnreadableReassignment,
    parse_partition_reassignment,
)
from regent.resources.partition_reassignment_status import PartitionReassignmentStatus


def _subjects(body: Mapping[str, Any]) -> tuple[str, ...]:
    """The topics that it is about: a change of theirs is news for it. Those of a rebalance are
    those of its plan, once there is one."""
    spec = body.get("spec")
    if not isinstance(spec, Mapping):
        return ()
    if spec.get("rebalance") is None:
        return topics_of(spec)
    plan = (body.get("status") or {}).get("plan")
    if not isinstance(plan, Mapping):
        return ()
    try:
        return read_plan(str(plan.get("document")), expected_hash=str(plan.get("hash"))).topics
    except PlanDocumentError:
        return ()


PARTITION_REASSIGNMENT: Final[
    KindDescriptor[PartitionReassignment | UnreadableReassignment, ReassignmentClaim]
] = KindDescriptor(
    kind=PartitionReassignment.kind,
    spec_fields=field_names(PartitionReassignmentSpec),
    status_fields=field_names(PartitionReassignmentStatus),
    parse=parse_partition_reassignment,
    finalizer=FINALIZER,
    subjects=_subjects,
    claim=claim_of,
)

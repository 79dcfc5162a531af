"""PartitionReassignment as a kind that is served."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from regent.reconcile.kinds import KindDescriptor
from regent.reconcile.reassignments.claims import ReassignmentClaim, claim_of
from regent.reconcile.reassignments.sources import topics_of
from regent.resources.base import field_names
from regent.resources.conditions import ConditionType
from regent.resources.partition_reassignment import (
    PartitionReassignment,
    PartitionReassignmentSpec,
    UnreadableReassignment,
    parse_partition_reassignment,
)
from regent.resources.partition_reassignment_status import PartitionReassignmentStatus


def _subjects(body: Mapping[str, Any]) -> tuple[str, ...]:
    """The topics that it is about: a change of theirs is news for it."""
    spec = body.get("spec")
    return topics_of(spec) if isinstance(spec, Mapping) else ()


PARTITION_REASSIGNMENT: Final[
    KindDescriptor[PartitionReassignment | UnreadableReassignment, ReassignmentClaim]
] = KindDescriptor(
    kind=PartitionReassignment.kind,
    spec_fields=field_names(PartitionReassignmentSpec),
    status_fields=field_names(PartitionReassignmentStatus),
    parse=parse_partition_reassignment,
    finalizer=None,
    conditions=(
        ConditionType.READY,
        ConditionType.RECONCILING,
        ConditionType.STALLED,
        ConditionType.PLAN_READY,
        ConditionType.APPROVED,
        ConditionType.EXECUTING,
        ConditionType.COMPLETED,
    ),
    subjects=_subjects,
    claim=claim_of,
)

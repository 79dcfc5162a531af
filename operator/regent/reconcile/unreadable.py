"""Resources with a record in their status that cannot be read: say so, and do nothing."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from datetime import datetime
from typing import Protocol, TypeVar

from regent.reconcile.departing import plan_departing
from regent.reconcile.plan import Plan
from regent.reconcile.verdicts import summary_verdicts, unknown_verdict, unreadable_assessment
from regent.resources.base import ObjectMeta
from regent.resources.conditions import ConditionType
from regent.resources.resource_status import ResourceStatus

StatusT_co = TypeVar("StatusT_co", bound=ResourceStatus, covariant=True)
StatusT = TypeVar("StatusT", bound=ResourceStatus)


class UnreadableResource(Protocol[StatusT_co]):
    """A resource that this Regent cannot read.

    Attributes:
        field: The first field concerned. If it is one of ``status``, what was stored must be kept.
        problem: What is wrong with it, as a sentence.
    """

    @property
    def metadata(self) -> ObjectMeta: ...

    @property
    def status(self) -> StatusT_co: ...

    @property
    def field(self) -> str: ...

    @property
    def problem(self) -> str: ...


def plan_of_unreadable(
    resource: UnreadableResource[StatusT], conditions: Iterable[ConditionType], *, now: datetime
) -> Plan[StatusT]:
    """The plan for a resource that does not match the schema of this Regent.

    Args:
        conditions: Those that only this kind has. Nothing is known of them.
    """
    if resource.metadata.is_being_deleted:
        departing = plan_departing(resource, conditions, now=now)
        return dataclasses.replace(departing, keeps_unread=_is_of_status(resource))
    assessment = unreadable_assessment(resource.field, resource.problem)
    unknown = (unknown_verdict(each, assessment.message) for each in conditions)
    return Plan(
        status=resource.status.with_verdicts(
            (*summary_verdicts(assessment), *unknown),
            generation=resource.metadata.generation,
            now=now,
        ),
        keeps_unread=_is_of_status(resource),
    )


def _is_of_status(resource: UnreadableResource[StatusT]) -> bool:
    return resource.field.startswith("status.")

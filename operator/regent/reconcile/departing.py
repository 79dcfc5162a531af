"""Resources that are being deleted, and for which nothing is done any more.

Mostly they are gone at once. Somebody else's finalizer may keep them for as long as it likes: then
they say so, as what they said before does not hold any more.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Final, Protocol, TypeVar

from regent.reconcile.plan import FinalizerAction, Plan
from regent.reconcile.verdicts import Assessment, Progress, summary_verdicts, unknown_verdict
from regent.resources.base import ObjectMeta
from regent.resources.conditions import ConditionReason, ConditionType, enumerate_some
from regent.resources.kafka_topic import FINALIZER
from regent.resources.resource_status import ResourceStatus

_HELD: Final = (
    "it is being deleted, and nothing is left to be done for it, but the API server does not let "
    "Regent's finalizer be taken off: the Event WriteRefused or NotStoredAsWritten says why; it is "
    "tried again"
)

StatusT_co = TypeVar("StatusT_co", bound=ResourceStatus, covariant=True)
StatusT = TypeVar("StatusT", bound=ResourceStatus)


class DepartingResource(Protocol[StatusT_co]):
    """A resource of any kind, whether it can be read or not."""

    @property
    def metadata(self) -> ObjectMeta: ...

    @property
    def status(self) -> StatusT_co: ...


def plan_departing(
    resource: DepartingResource[StatusT],
    conditions: Iterable[ConditionType],
    *,
    now: datetime,
    stays_true: bool = False,
) -> Plan[StatusT]:
    """The plan for a resource that is being deleted, and for which nothing is left to be done.

    Regent's finalizer goes, also where Regent never puts it: it is copied with manifests.

    Args:
        conditions: Those that only this kind has. Nothing is known of them any more.
        stays_true: What the status says was true in the past, and nothing else.
    """
    metadata = resource.metadata
    if FINALIZER in metadata.finalizers:
        held = None if stays_true else status_if_held(resource, conditions, now=now)
        return Plan(finalizer=FinalizerAction.REMOVE, status_if_held=held)
    if not metadata.finalizers or stays_true:
        return Plan()
    holders = enumerate_some(metadata.finalizers, limit=3)
    message = (
        "it is being deleted, and nothing is done for it any more; it goes once nobody's finalizer "
        f"holds it: {holders}"
    )
    assessment = Assessment(Progress.PROGRESSING, ConditionReason.BEING_DELETED, message)
    return Plan(status=_status(resource, assessment, conditions, now=now))


def status_if_held(
    resource: DepartingResource[StatusT], conditions: Iterable[ConditionType], *, now: datetime
) -> StatusT:
    """What a resource shows that Regent lets go, if the API server refuses to have Regent's
    finalizer taken off. Arguments as for :func:`plan_departing`."""
    return _status(
        resource,
        Assessment(Progress.PROGRESSING, ConditionReason.WRITE_REFUSED, _HELD),
        conditions,
        now=now,
    )


def _status(
    resource: DepartingResource[StatusT],
    assessment: Assessment,
    conditions: Iterable[ConditionType],
    *,
    now: datetime,
) -> StatusT:
    unknown = (unknown_verdict(each, assessment.message) for each in conditions)
    return resource.status.with_verdicts(
        (*summary_verdicts(assessment), *unknown),
        generation=resource.metadata.generation,
        now=now,
    )

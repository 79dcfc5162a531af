"""The status of a BrokerDrain: from what was found out to fields and conditions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from regent.reconcile.drains.obstacles import Obstacle
from regent.reconcile.drains.request import DrainRequest, remaining
from regent.reconcile.unreadable_topics import problem_in
from regent.reconcile.verdicts import Assessment, summary_verdicts, unknown_verdict
from regent.resources.broker_drain import DesiredDrainState, DrainMode
from regent.resources.broker_drain_status import (
    MAX_BLOCKERS,
    Blocker,
    BrokerDrainStatus,
    DrainPhase,
    Remaining,
)
from regent.resources.conditions import (
    ConditionReason,
    ConditionStatus,
    ConditionType,
    Verdict,
)

DOMAIN_CONDITIONS: Final = (
    ConditionType.CORDONED,
    ConditionType.LEADERS_MOVED,
    ConditionType.REPLICAS_MOVED,
    ConditionType.DRAINED,
)


def status_in(
    request: DrainRequest, phase: DrainPhase, assessment: Assessment, **fields: Any
) -> BrokerDrainStatus:
    """The status of a resource in a phase. Blockers are those that are given."""
    left = remaining(request)
    verdicts = (
        *summary_verdicts(assessment),
        _cordoned(request),
        _leaders_moved(request, left),
        _replicas_moved(request, left),
        _verdict(
            ConditionType.DRAINED,
            phase is DrainPhase.DRAINED,
            assessment.reason,
            assessment.message,
        ),
    )
    return _status(
        request,
        verdicts,
        phase=phase,
        cluster_id=request.view.cluster_id,
        controller_epoch=request.view.controller_epoch,
        remaining=left,
        **{"blockers": (), **fields},
    )


def blind_status(request: DrainRequest, assessment: Assessment) -> BrokerDrainStatus:
    """The status when nothing is known of the cluster: what was last seen stays."""
    unknown = (unknown_verdict(kind, assessment.message) for kind in DOMAIN_CONDITIONS)
    return _status(request, (*summary_verdicts(assessment), *unknown))


def blockers_of(obstacles: Sequence[Obstacle]) -> tuple[Blocker, ...]:
    """Obstacles as the status has them: those that do not heal by themselves first."""
    ordered = sorted(obstacles, key=lambda obstacle: obstacle.is_transient)
    return tuple(obstacle.blocker for obstacle in ordered[:MAX_BLOCKERS])


def _cordoned(request: DrainRequest) -> Verdict:
    is_cordoned = request.is_cordoned
    if is_cordoned:
        is_client = request.view.is_client
        reason = (
            ConditionReason.CORDONED_FOR_REGENT if is_client else ConditionReason.BROKERS_CORDONED
        )
    elif request.resource.spec.desired_state is DesiredDrainState.UNDONE:
        reason = ConditionReason.CORDON_LIFTED
    else:
        reason = ConditionReason.CORDONING
    return _verdict(ConditionType.CORDONED, is_cordoned, reason, reason.documentation)


def _leaders_moved(request: DrainRequest, left: Remaining) -> Verdict:
    problem = problem_in(request.view)
    if not left.leaders and problem is not None:
        return unknown_verdict(ConditionType.LEADERS_MOVED, problem)
    if not left.leaders:
        reason = ConditionReason.NO_LEADERS
        return _verdict(ConditionType.LEADERS_MOVED, True, reason, reason.documentation)
    return _verdict(
        ConditionType.LEADERS_MOVED,
        False,
        ConditionReason.LEADERS_REMAIN,
        "status.remaining.leaders says how many partitions the brokers lead, or are preferred for",
    )


def _replicas_moved(request: DrainRequest, left: Remaining) -> Verdict:
    problem = problem_in(request.view)
    if not left.replicas and problem is not None:
        return unknown_verdict(ConditionType.REPLICAS_MOVED, problem)
    if not left.replicas:
        reason = ConditionReason.NO_REPLICAS
        return _verdict(ConditionType.REPLICAS_MOVED, True, reason, reason.documentation)
    if request.resource.spec.mode is DrainMode.LEADERSHIP:
        reason = ConditionReason.REPLICAS_STAY
        return _verdict(ConditionType.REPLICAS_MOVED, False, reason, reason.documentation)
    return _verdict(
        ConditionType.REPLICAS_MOVED,
        False,
        ConditionReason.REPLICAS_REMAIN,
        "status.remaining.replicas says how many there are",
    )


def _verdict(type_: ConditionType, holds: bool, reason: ConditionReason, message: str) -> Verdict:
    status = ConditionStatus.TRUE if holds else ConditionStatus.FALSE
    return Verdict(type_, status, reason, message)


def _status(
    request: DrainRequest, verdicts: tuple[Verdict, ...], **fields: Any
) -> BrokerDrainStatus:
    resource = request.resource
    return resource.status.with_verdicts(
        verdicts, generation=resource.metadata.generation, now=request.now, **fields
    )

"""Resources while another Regent process is the controller of the Kafka cluster.

It may belong to another release, with a Lease of its own. Then it looks after the resources that it
serves, and so do its replicas while there is no controller: who speaks beside it says what is not
so, and each would overwrite the other. What it does not serve has no controller here, whoever else
leads; the reason is another one then, and so is the way out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

from regent.model.active_regent import ActiveRegent, ServedResources
from regent.reconcile.plan import Plan
from regent.reconcile.request import Absence, Resource, ResourceRequest
from regent.reconcile.selection import ClusterSelection
from regent.reconcile.verdicts import Assessment, Progress
from regent.resources.conditions import ConditionReason, ConditionType, find_condition
from regent.resources.resource_status import ResourceStatus

ResourceT = TypeVar("ResourceT", bound=Resource)
StatusT = TypeVar("StatusT", bound=ResourceStatus)

_NO_ANSWERS: Final = (ConditionReason.CONTROLLER_INACTIVE, ConditionReason.NOT_ANSWERED)
"""What only those say who are not the controller."""

_NAMED: Final = 5
"""So many namespaces are named in a message."""


def looks_after(
    regent: ActiveRegent | None, body: Mapping[str, Any], *, lease: str, can_serve: bool = False
) -> bool:
    """Whether an object of the API is to be left to the Regent that is the controller.

    Args:
        lease: ``namespace/name`` of the own Lease. Who is to keep the same one looks after nothing:
            this process has it.
        can_serve: Whether the object can be served here, as in client mode. Then one that does not
            say what it serves is not waited for; else it may look after the object.
    """
    if regent is None:
        return False
    served = regent.resources
    if served is None:
        return not can_serve
    if served.lease in (None, lease):
        return False
    namespace = body["metadata"].get("namespace")
    selection = ClusterSelection(name=served.cluster_name, is_default=served.is_default)
    return (not served.namespaces or namespace in served.namespaces) and selection.serves(body)


def plan_looked_after(
    request: ResourceRequest[ResourceT], status: Callable[[Assessment], StatusT]
) -> Plan[StatusT] | None:
    """The plan for a resource that another Regent looks after; None: none does.

    What that one has answered is left alone, and so is the finalizer in any case. It may be busy
    for a while; but that nobody answers must not go unsaid.

    Args:
        status: Makes the status while nothing is known.
    """
    absence = request.absence
    if not absence.is_looked_after:
        return None
    if is_answered_by_controller(request):
        return Plan()
    if request.waited_s < absence.unknown_after_s:
        return Plan(requeue_after_s=absence.unknown_after_s - request.waited_s)
    return Plan(status=status(_not_answered(absence)))


def is_answered_by_controller(request: ResourceRequest[ResourceT]) -> bool:
    """Whether a controller has reacted to this generation of the resource."""
    ready = find_condition(request.resource.status.conditions, ConditionType.READY)
    return request.is_answered and (ready is None or ready.reason not in _NO_ANSWERS)


def _not_answered(absence: Absence) -> Assessment:
    assert absence.regent is not None, "it looks after the resource"
    is_known = absence.regent.resources is not None
    serves = "serves this resource" if is_known else "may serve this resource"
    return Assessment(
        Progress.UNKNOWN,
        ConditionReason.NOT_ANSWERED,
        f"{_leads(absence.regent, absence)} and {serves}, "
        f"but has not answered it for {absence.unknown_after_s:.0f} s; its log and its /readyz say "
        "whether it reaches this API server and has its rights; if it is not to serve this "
        "resource, give it other namespaces or another cluster_name",
    )


def inactive(absence: Absence, consequence: str) -> Assessment:
    """How a resource is doing while no Regent process that serves it is the controller.

    Args:
        consequence: What that means for the resource, as a clause.
    """
    return Assessment(
        Progress.UNKNOWN,
        ConditionReason.CONTROLLER_INACTIVE,
        "; ".join(part for part in _parts(absence, consequence) if part is not None),
    )


def _parts(absence: Absence, consequence: str) -> tuple[str | None, ...]:
    """Who is the controller, what follows, and the way out."""
    regent = absence.regent
    if regent is None:
        why = f" ({absence.reason})" if absence.reason else ""
        nobody = f"no Regent process is known to be the controller of the Kafka cluster{why}"
        return nobody, consequence, None
    leads, served = _leads(regent, absence), regent.resources
    if served is None:
        return leads, consequence, "bring it up to date: then it says what it serves"
    if served.lease is None:
        return (
            f"{leads} and serves no custom resources (without_kubernetes)",
            consequence,
            "run it with custom resources, or stop it",
        )
    if served.lease == absence.lease:
        return (
            f"{leads}, but does not keep the Lease {served.lease}",
            consequence,
            "its log says whether it reaches the API server and may write Leases",
        )
    return (
        f"{leads} and serves only {describe_scope(served)}",
        consequence,
        f"have it serve this resource, too, or stop it: then one with the Lease {absence.lease} "
        "can be the controller",
    )


def _leads(regent: ActiveRegent, absence: Absence) -> str:
    """Without ZooKeeper it is what was last seen."""
    as_known = f" as far as is known here ({absence.reason})" if absence.reason else ""
    return f"{_named(regent)} is the controller of the Kafka cluster{as_known}"


def _named(regent: ActiveRegent) -> str:
    served = regent.resources
    if served is None:
        return f"Regent replica {regent.controller_id}, which does not say what it serves,"
    if served.lease is None:
        return f"Regent replica {regent.controller_id}"
    return f"Regent replica {regent.controller_id} with the Lease {served.lease}"


def describe_scope(served: ServedResources) -> str:
    """Which resources it serves, for people."""
    cluster = None
    if served.cluster_name is not None:
        cluster = f"resources whose spec.clusterRef names {served.cluster_name}"
        if served.is_default:
            cluster += " or nothing"
    if not served.namespaces:
        return cluster or "resources without spec.clusterRef"
    names = ", ".join(served.namespaces[:_NAMED])
    more = len(served.namespaces) - _NAMED
    namespaces = f"namespaces {names}" + (f" and {more} more" if more > 0 else "")
    return namespaces if cluster is None else f"{namespaces}, there {cluster}"

"""Resources while the controller has just been elected and is still reading the cluster.

Nothing is known of the cluster yet, but what the controller before has said was true a moment ago.
Were it overwritten, each change of controllers would make every resource not ready for a moment,
and write every status twice.
"""

from __future__ import annotations

from typing import Any, TypeVar

from regent.reconcile.other_regent import is_answered_by_controller
from regent.reconcile.plan import Plan
from regent.reconcile.request import Resource, ResourceRequest

ResourceT = TypeVar("ResourceT", bound=Resource)


def plan_kept_answer(request: ResourceRequest[ResourceT]) -> Plan[Any] | None:
    """The plan for a resource that a controller has answered, of which the view does not know
    anything yet; None: the cluster has been read, or that it is not known is to be said.

    The answer is left alone for as long as without a controller.
    """
    if request.view.is_complete:
        return None
    if is_answered_by_controller(request) and request.until_unknown_s > 0:
        return Plan(requeue_after_s=request.until_unknown_s)
    return None

"""Says by which listeners of the brokers nobody can ask the controller."""

from __future__ import annotations

from regent.controller.active_controller import ActiveController
from regent.controller.brokers.announcement import listeners_not_served


def report(active: ActiveController) -> None:
    """Log listeners that are not served, once they are others than before."""
    context = active.context
    served = context.term.served
    if not served:
        return
    missing = listeners_not_served(context.cluster.brokers, served)
    if missing != context.unserved_listeners and missing:
        active.log.warning(
            "Listeners of brokers are not served: who uses them cannot ask the controller",
            listeners=missing,
            served=sorted(served),
        )
    context.unserved_listeners = missing

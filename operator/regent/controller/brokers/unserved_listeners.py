"""Says by which listeners of the brokers nobody can ask the controller, and which addresses are set
for listeners that no broker has."""

from __future__ import annotations

from regent.controller.active_controller import ActiveController
from regent.controller.brokers.announcement import listeners_not_served
from regent.controller.state.context import ControllerContext


def report(active: ActiveController) -> None:
    """Log such listeners, once they are others than before."""
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
    unknown = _unknown_listeners(context)
    if unknown != context.unknown_listeners and unknown:
        active.log.warning(
            "No broker has a listener of this name: check endpoint_further_listeners and "
            "endpoint_advertised_listeners",
            listeners=unknown,
        )
    context.unknown_listeners = unknown


def _unknown_listeners(context: ControllerContext) -> tuple[str, ...]:
    """Names that have an address of their own in the settings, and that no live broker uses."""
    brokers = context.cluster.brokers.values()
    known = {endpoint.listener for broker in brokers for endpoint in broker.endpoints}
    return tuple(name for name in context.term.listener_addresses if brokers and name not in known)

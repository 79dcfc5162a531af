"""Which clusters a Regent refuses, as their brokers could not reach it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Final

from regent.model.cluster import Address, Broker
from regent.model.errors import UnsupportedClusterError

REGISTRATION_SINCE_2_7: Final = 5
"""Version of a registration from inter.broker.protocol.version 2.7-IV0 on (KIP-584)."""


def listeners_not_served(
    brokers: Mapping[int, Broker], served: Mapping[str, Address]
) -> dict[str, str]:
    """Listeners of brokers, with their security protocols, under which we cannot be reached."""
    return {
        endpoint.listener: endpoint.security_protocol
        for broker in brokers.values()
        for endpoint in broker.endpoints
        if endpoint.security_protocol not in served
    }


def refuse_unreachable(
    brokers: Iterable[Broker],
    served: Mapping[str, Address],
    *,
    announced_listeners: Collection[str] = (),
    inter_broker_listener: str | None = None,
) -> None:
    """Brokers from inter.broker.protocol.version 2.7 on change ISRs by asking the controller.

    Without an answer their producers with acks=all come to a halt as soon as a follower falls
    behind, so a cluster whose brokers cannot reach us is left to the controller that it has. By
    which listener they would, a registration does not say.

    Args:
        brokers: The live brokers.
        served: As in :func:`~regent.cluster.announced_controller.announced_controller`.
        announced_listeners: Likewise the ``listeners``.
        inter_broker_listener: The listener by which brokers reach the controller; None: it may be
            any of theirs. So it may for a broker that lacks it: one that is set up otherwise than
            the others does not take their controller from them.

    Raises:
        UnsupportedClusterError: Names the brokers, the listeners, and what to do.
    """
    asking = [b for b in brokers if b.registration_version >= REGISTRATION_SINCE_2_7]
    chosen = {
        broker.broker_id: None
        if inter_broker_listener is None
        else broker.endpoint(inter_broker_listener)
        for broker in asking
    }
    missing: dict[str, None] = {}
    if inter_broker_listener is not None and asking and not any(chosen.values()):
        missing[f"{inter_broker_listener} (which all of them lack)"] = None
    for broker in asking:
        endpoint = chosen[broker.broker_id]
        for each in broker.endpoints if endpoint is None else (endpoint,):
            if each.security_protocol not in served:
                missing[f"{each.listener} ({each.security_protocol} is not served)"] = None
            elif announced_listeners and each.listener not in announced_listeners:
                missing[f"{each.listener} (not in endpoint_announced_listeners)"] = None
    if not missing:
        return
    who = f"brokers {[b.broker_id for b in asking]} run inter.broker.protocol.version 2.7 or newer"
    protocol = "set inter.broker.protocol.version=2.6 on all brokers"
    if not served:
        raise UnsupportedClusterError(
            f"{who}, where leaders change ISRs by asking the controller, and nobody can ask "
            f"Regent: set endpoint_port, or {protocol}"
        )
    lacking = [broker_id for broker_id, endpoint in chosen.items() if endpoint is None]
    others = ""
    if 0 < len(lacking) < len(asking):
        others = (
            f"Give brokers {lacking} the listener {inter_broker_listener}, as the others have it: "
            "brokers that use it for the controller fail as controllers while one lacks it. "
            "Otherwise: "
        )
    raise UnsupportedClusterError(
        f"{who}, where leaders change ISRs by asking the controller, and Regent cannot be reached "
        f"by the listeners {', '.join(missing)}. {others}Serve what they need (endpoint_tls, "
        "endpoint_sasl_mechanisms), or name the listener that brokers use for the controller in "
        f"inter_broker_listener, if it is another one; or {protocol}"
    )


def refuse_address_of_a_broker(brokers: Iterable[Broker], addresses: Iterable[Address]) -> None:
    """Who asks the controller at an address of a broker asks that broker, which refuses: it is not
    the controller. Nothing else would show it: leaders go on, until a follower falls behind.

    Args:
        brokers: The live brokers.
        addresses: Those under which we would be announced.

    Raises:
        UnsupportedClusterError: A broker has an address under which we would be announced.
    """
    ours = {(address.host.lower(), address.port): address for address in addresses}
    for broker in brokers:
        for each in broker.endpoints:
            address = ours.get((each.host.lower(), each.port))
            if address is not None:
                raise UnsupportedClusterError(
                    f"the address at which brokers and clients are to reach Regent, "
                    f"{address.host}:{address.port}, is that of broker {broker.broker_id} "
                    f"(listener {each.listener}): they would ask that broker. Give Regent an "
                    "address of its own (endpoint_advertised_host, endpoint_advertised_port, "
                    "endpoint_advertised_listeners)"
                )

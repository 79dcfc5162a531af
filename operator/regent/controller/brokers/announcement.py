"""How the controller appears to brokers and clients: as one more live broker of UpdateMetadata.

Brokers 3.0 and newer look the controller up there, under the listener that they use among each
other; brokers 2.7 need that listener in *every* entry of the list, and one without it ends their
channel to the controller until they restart. Clients find the controller by it too. So it has every
listener that a broker has, under the name that brokers give it, unless the settings choose.

It is never a broker of the cluster state: it has no replicas and takes part in no election.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from types import MappingProxyType
from typing import Final

from regent.model.cluster import Address, Broker, EndPoint
from regent.model.errors import UnsupportedClusterError

REGISTRATION_SINCE_2_7: Final = 5
"""Version of a registration from inter.broker.protocol.version 2.7-IV0 on (KIP-584)."""


def announced_controller(
    controller_id: int,
    brokers: Mapping[int, Broker],
    served: Mapping[str, Address],
    listeners: Collection[str] = (),
    *,
    addresses: Mapping[str, Address] = MappingProxyType({}),
) -> Broker | None:
    """The controller as a live broker.

    It has a rack if all brokers have one: otherwise brokers could not place replicas across racks
    any more.

    Args:
        controller_id: Ours.
        brokers: The live brokers.
        served: Security protocol -> where brokers and clients reach us with it.
        listeners: Names of the listeners under which to appear; none: all of them.
        addresses: Name of a listener -> where its users reach us instead.

    Returns:
        None if none of the brokers' listeners has a security protocol that is served.
    """
    endpoints: dict[str, EndPoint] = {}
    for broker in brokers.values():
        for each in broker.endpoints:
            address = served.get(each.security_protocol)
            if address is not None and (not listeners or each.listener in listeners):
                address = addresses.get(each.listener, address)
                endpoints.setdefault(
                    each.listener,
                    EndPoint(each.listener, each.security_protocol, address.host, address.port),
                )
    if not endpoints:
        return None
    rack = _common_rack(brokers.values())
    return Broker(controller_id, epoch=-1, endpoints=tuple(endpoints.values()), rack=rack)


def _common_rack(brokers: Iterable[Broker]) -> str | None:
    """The rack with the most brokers, where one more gets the fewest replicas."""
    racks = [broker.rack for broker in brokers]
    counts = Counter(rack for rack in racks if rack is not None)
    if counts.total() < len(racks):
        return None
    return min(counts, key=lambda rack: (-counts[rack], rack))


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
        served: As in :func:`announced_controller`.
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

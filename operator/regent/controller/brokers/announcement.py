"""How the controller appears to brokers and clients: as one more live broker of UpdateMetadata.

Brokers 3.0 and newer look the controller up there, under the listener that they use among each
other; brokers 2.7 need that listener in *every* entry of the list, and one without it ends their
channel to the controller until they restart. Clients find the controller by it too. So it has every
listener that a broker has, under the name that brokers give it.

It is never a broker of the cluster state: it has no replicas and takes part in no election.
"""

from __future__ import annotations

from collections.abc import Mapping

from regent.model.cluster import Address, Broker, EndPoint


def announced_controller(
    controller_id: int, brokers: Mapping[int, Broker], served: Mapping[str, Address]
) -> Broker | None:
    """The controller as a live broker.

    Args:
        controller_id: Ours.
        brokers: The live brokers.
        served: Security protocol -> where brokers and clients reach us with it.

    Returns:
        None if none of the brokers' listeners has a security protocol that is served.
    """
    protocols: dict[str, str] = {}
    for broker in brokers.values():
        for endpoint in broker.endpoints:
            protocols.setdefault(endpoint.listener, endpoint.security_protocol)
    endpoints = tuple(
        EndPoint(listener, protocol, served[protocol].host, served[protocol].port)
        for listener, protocol in protocols.items()
        if protocol in served
    )
    return Broker(controller_id, epoch=-1, endpoints=endpoints) if endpoints else None


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

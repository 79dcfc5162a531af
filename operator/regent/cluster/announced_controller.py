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

ANNOUNCED_EPOCH: Final = -1
"""Broker epoch of a Regent: it has no registration as a broker."""


def announced_controller(
    controller_id: int,
    brokers: Mapping[int, Broker],
    served: Mapping[str, Address],
    listeners: Collection[str] = (),
    *,
    addresses: Mapping[str, Address] = MappingProxyType({}),
) -> Broker | None:
    """The controller as a live broker.

    It has a rack if all brokers have one: otherwise brokers could no longer place replicas across
    racks.

    Args:
        controller_id: Its id.
        brokers: The live brokers.
        served: Security protocol -> where brokers and clients reach it with it.
        listeners: Names of the listeners under which to appear; none: all of them.
        addresses: Name of a listener -> where its users reach it instead.

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
    return Broker(
        controller_id, epoch=ANNOUNCED_EPOCH, endpoints=tuple(endpoints.values()), rack=rack
    )


def _common_rack(brokers: Iterable[Broker]) -> str | None:
    """The rack with the most brokers, where one more gets the fewest replicas."""
    racks = [broker.rack for broker in brokers]
    counts = Counter(rack for rack in racks if rack is not None)
    if counts.total() < len(racks):
        return None
    return min(counts, key=lambda rack: (-counts[rack], rack))

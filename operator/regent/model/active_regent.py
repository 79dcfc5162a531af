"""The Regent that is the controller, as every other process can know it from ZooKeeper."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import msgspec

from regent.model.cluster import Address


class RegentEndpoint(msgspec.Struct, frozen=True):
    """Where brokers and clients reach a Regent that is the controller.

    Attributes:
        served: By security protocol.
        listener_addresses: By the name of a brokers' listener, where its users reach the Regent
            instead, with the security protocol of that listener.
    """

    served: Mapping[str, Address] = MappingProxyType({})
    listener_addresses: Mapping[str, Address] = MappingProxyType({})


class ServedResources(msgspec.Struct, frozen=True):
    """Which custom resources a Regent serves.

    Attributes:
        lease: ``namespace/name`` of the Lease that its replicas share; None: it serves none.
        namespaces: Whose resources it serves; none: those of all namespaces.
        cluster_name: Name that resources give its Kafka cluster; None: it has none.
        is_default: Whether resources that name no cluster are its own, too.
    """

    lease: str | None
    namespaces: tuple[str, ...] = ()
    cluster_name: str | None = None
    is_default: bool = False

    def report(self) -> dict[str, object]:
        """As JSON has it."""
        return {
            "lease": self.lease,
            "namespaces": list(self.namespaces),
            "clusterName": self.cluster_name,
            "isDefault": self.is_default,
        }


class ActiveRegent(msgspec.Struct, frozen=True):
    """A Regent process that holds ``/controller``.

    Attributes:
        controller_id: The id under which it does.
        resources: Which custom resources it serves; None: it does not say, as it is of an earlier
            version, or in a way that this one cannot read.
        endpoint: Where it is reached; None: nowhere, or it does not say.
    """

    controller_id: int
    resources: ServedResources | None = None
    endpoint: RegentEndpoint | None = None

    def report(self) -> dict[str, object]:
        """As ``/status`` shows it."""
        resources = None if self.resources is None else self.resources.report()
        return {"controllerId": self.controller_id, "customResources": resources}

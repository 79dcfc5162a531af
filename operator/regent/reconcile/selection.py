"""Which resources a Regent serves: those of its Kafka cluster, as ``spec.clusterRef`` says.

As with the classes of ingress controllers, a resource that names a cluster is served by the Regent
of that name and by no other; one that names none by the default one. So two Regents of two Kafka
clusters in one Kubernetes never act on the same resource.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSelection:
    """What one Regent serves.

    Attributes:
        name: Name that resources give its Kafka cluster; None: it has none.
        is_default: Whether resources that name no cluster are its own, too. A Regent without a name
            always is: it would serve nothing else.
    """

    name: str | None = None
    is_default: bool = False

    def serves(self, body: Mapping[str, Any]) -> bool:
        """Whether an object of the API is served here."""
        declared = _cluster_of(body)
        if declared is None:
            return self.is_default or self.name is None
        return declared == self.name


def _cluster_of(body: Mapping[str, Any]) -> str | None:
    """The cluster that an object names, as far as it can be read."""
    spec = body.get("spec")
    reference = spec.get("clusterRef") if isinstance(spec, Mapping) else None
    name = reference.get("name") if isinstance(reference, Mapping) else None
    return name if isinstance(name, str) else None

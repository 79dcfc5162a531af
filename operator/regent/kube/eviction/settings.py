"""How evictions are dealt with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from regent.resources.broker_drain import DrainMode


@dataclass(frozen=True, slots=True, kw_only=True)
class EvictionSettings:
    """Which pods are brokers, and what is done before one is evicted.

    Attributes:
        pod_labels: A pod with all of these labels is a broker.
        broker_id_label: Label of a pod that has its broker's id; None: the pod's name has it.
        mode: What leaves a broker before its pod does.
        namespace: Where BrokerDrains are made.
        cluster_name: What they name as their Kafka cluster; None: nothing.
        abandoned_after_s: A drain is undone when nobody has asked for the eviction for this long,
            and the pod is still there.
        check_interval_s: How often pods are looked at for whose eviction there is a drain.
        noted_interval_s: How often it is written down that somebody asks. Who evicts asks every
            few seconds.
    """

    pod_labels: Mapping[str, str]
    broker_id_label: str | None = None
    mode: DrainMode = DrainMode.LEADERSHIP
    namespace: str
    cluster_name: str | None = None
    abandoned_after_s: float = 3_600.0
    check_interval_s: float = 10.0
    noted_interval_s: float = 60.0

    def drain_name(self, broker: int) -> str:
        """Name of the BrokerDrain that is made for evictions of a broker's pod."""
        return f"{self.drain_prefix}{broker}"

    @property
    def drain_prefix(self) -> str:
        """What the names of all BrokerDrains begin with that are made for evictions."""
        cluster = "" if self.cluster_name is None else f"{self.cluster_name}-"
        return f"eviction-{cluster}broker-"

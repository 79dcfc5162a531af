"""Tunables of the Kubernetes side."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from regent.kube.eviction.settings import EvictionSettings
from regent.kube.service_account import own_namespace
from regent.model.active_regent import ServedResources
from regent.model.topic_name_rules import TopicNameRules
from regent.reconcile.selection import ClusterSelection

PAGE_SIZE: Final = 200
"""Objects per page when listing. A page is in memory as a whole, three times over while it is
decoded, and objects may have hundreds of kilobytes of annotations. A request costs the API server
milliseconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KubeSettings:
    """How Regent works with the Kubernetes API.

    Attributes:
        namespaces: Namespaces whose resources are served; none: all of them.
        selection: Which resources in them are served.
        topic_name_rules: Which namespaces may declare which topics.
        concurrency: Resources reconciled at the same time. They meet in batches of commands, so a
            large number makes bulk work fast and costs little.
        max_connections: HTTP connections to the API server for reading and writing. Watches have
            others.
        resync_interval_s: Everything is listed and compared again after this time, in case a watch
            lost something.
        resync_spread_s: The work of a resync is spread over this time.
        status_detail_interval_s: Details (which replica is in sync) are written at most this often
            per resource; conditions, drift and counts of partitions at once.
        request_timeout_s: For one request to the API server, from the moment on at which one of the
            connections is free for it.
        submit_timeout_s: For one batch of commands to the controller.
        accepted_settle_s: How long an accepted command may take to show in the view before it is
            sent again.
        refused_retry_s: When a permanently refused command is tried again without a change.
        outranked_patience_s: A status with a higher epoch than ours is overwritten when this
            process has been the controller for this long since it was written. Longer than any
            ZooKeeper session lasts without ZooKeeper: by then a newer controller would have ended
            this one's term.
        stuck_after_s: Seconds without any progress after which the work on custom resources counts
            as stuck.
        page_size: Objects per page when listing.
        check_interval_s: How often a namespace that cannot be read is tried again, and how soon it
            is found out that a backup of the API server's store was restored.
        stream_settled_after_s: When kopf's list has shown nothing for this long it has arrived, and
            objects that it has not shown are looked up.
        stream_silent_after_s: If kopf's list does not arrive, all objects are looked up after this
            time.
        unknown_after_s: When conditions turn Unknown after the Kafka cluster has lost its
            controller.
        lease_namespace: Namespace of the Lease; None: that of the pod.
        lease_name: Name of the Lease that the replicas of one Regent share.
        lease_duration_s: An observer may take the Lease when it has not been renewed for this long.
        lease_retry_s: Seconds between renewals of the Lease.
        evictions: What is done before a broker's pod is evicted; None: nothing.
    """

    namespaces: tuple[str, ...] = ()
    selection: ClusterSelection = field(default_factory=ClusterSelection)
    topic_name_rules: TopicNameRules = field(default_factory=TopicNameRules)
    concurrency: int = 256
    max_connections: int = 16
    resync_interval_s: float = 600.0
    resync_spread_s: float = 60.0
    status_detail_interval_s: float = 10.0
    request_timeout_s: float = 30.0
    submit_timeout_s: float = 30.0
    accepted_settle_s: float = 10.0
    refused_retry_s: float = 600.0
    outranked_patience_s: float = 120.0
    stuck_after_s: float = 120.0
    page_size: int = PAGE_SIZE
    check_interval_s: float = 15.0
    stream_settled_after_s: float = 2.0
    stream_silent_after_s: float = 5.0
    unknown_after_s: float = 120.0
    lease_namespace: str | None = None
    lease_name: str = "regent"
    lease_duration_s: int = 15
    lease_retry_s: float = 2.0
    evictions: EvictionSettings | None = None

    @property
    def lease(self) -> str:
        """``namespace/name`` of the Lease."""
        return f"{self.lease_namespace or own_namespace()}/{self.lease_name}"

    @property
    def served_resources(self) -> ServedResources:
        """What is served, as other Regents see it."""
        return ServedResources(
            lease=self.lease,
            namespaces=self.namespaces,
            cluster_name=self.selection.name,
            is_default=self.selection.is_default,
        )

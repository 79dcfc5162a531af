"""What has to be configured: the controller reads no broker's configuration file."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import msgspec

from regent.model.active_regent import ServedResources
from regent.model.cluster import Address
from regent.zk_data.operations import DEFAULT_JUTE_MAX_BUFFER

FIRST_BALANCE_CHECK_MS: Final = 5_000
"""When the balance of leaders is checked for the first time after an election, as in Kafka."""


class MissingCluster(enum.StrEnum):
    """What to do where ZooKeeper has no Kafka cluster: no ``/cluster/id`` and no broker."""

    WAIT = "wait"
    """Write nothing, elect no leader, and keep checking."""
    CREATE = "create"
    """Be the controller of the cluster that is to begin there."""


class ControllerConfig(msgspec.Struct, frozen=True):
    """Settings of the controller core.

    Attributes:
        controller_id: Id under which ``/controller`` is held. Never the id of a broker, real or
            future: that broker's own controller module would take itself for the active one.
        unclean_leader_election_enable: Cluster-wide default, as in the brokers' configuration; the
            dynamic default in ``/config/brokers/<default>`` and a topic's own value win over it.
        auto_leader_rebalance_enable: Whether leaders are moved to their preferred replicas when
            they are out of balance.
        leader_imbalance_check_interval_s: How often that is checked; at first
            :data:`FIRST_BALANCE_CHECK_MS` after the election.
        leader_imbalance_per_broker_percentage: How many of the partitions that a broker is to lead
            may be led by others before leaders are moved.
        delete_topic_enable: As in the brokers' configuration; when False, markers of topics to be
            deleted are removed unheeded.
        deletion_waits_for_brokers: Whether a topic is deleted only when every broker that hosts a
            replica of it is up, as Kafka's own controller does. Else the remaining replicas are
            noted in ZooKeeper, and deleted when their broker is back.
        missing_cluster: What to do where ZooKeeper has no Kafka cluster.
        inter_broker_protocol: Lowest inter.broker.protocol.version, (major, minor), as the settings
            have it; None: the brokers alone say.
        default_replication_factor: For topics that ask for none.
        jute_max_buffer: ``jute.maxbuffer`` of the ZooKeeper servers, in bytes.
        served: Security protocol -> where brokers and clients reach this process with it. Empty: it
            cannot be asked anything, and is not announced.
        listener_addresses: Name of a brokers' listener -> where those of its users reach this
            process instead, with the same security protocol.
        announced_listeners: Names of the brokers' listeners under which the controller appears as a
            live broker; none: all whose security protocol is served.
        inter_broker_listener: The listener by which brokers reach the controller; None: not known.
        watch_check_interval_s: How often is looked up what watches are to report; None: never.
        unassigned_replica_check_interval_s: How often brokers are asked for replicas that are not
            assigned to them; None: never.
        delegation_token_expiry_check_interval_ms: How often delegation tokens that have expired are
            removed; None: never.
        election_path: Where the replicas of this Regent elect one among themselves. A Regent with
            another one is not deposed.
        resources: Which custom resources this Regent serves: said to others while it is the
            controller; None: it does not say.
        election_backoff_ms: Wait before ``/controller`` is taken from another holder again, after
            it was lost to one.
        election_backoff_max_ms: Bound of the doubling wait after failures of our own.
        suspicion_backoff_ms: Wait after a take-over by suspicion before another; it doubles.
        suspicion_backoff_max_ms: Bound of that wait. Twice as long without one, it begins anew.
        refusal_repair_backoff_ms: Wait before a refused request is sent again for the first time;
            it doubles with each attempt.
        refusal_repair_attempts: How often a refused request is sent again.
    """

    controller_id: int
    unclean_leader_election_enable: bool = False
    auto_leader_rebalance_enable: bool = True
    leader_imbalance_check_interval_s: int = 300
    leader_imbalance_per_broker_percentage: int = 10
    delete_topic_enable: bool = True
    deletion_waits_for_brokers: bool = False
    missing_cluster: MissingCluster = MissingCluster.WAIT
    inter_broker_protocol: tuple[int, int] | None = None
    default_replication_factor: int = 1
    jute_max_buffer: int = DEFAULT_JUTE_MAX_BUFFER
    served: Mapping[str, Address] = MappingProxyType({})
    listener_addresses: Mapping[str, Address] = MappingProxyType({})
    announced_listeners: frozenset[str] = frozenset()
    inter_broker_listener: str | None = None
    watch_check_interval_s: int | None = 60
    unassigned_replica_check_interval_s: int | None = 3_600
    delegation_token_expiry_check_interval_ms: int | None = 3_600_000
    election_path: str = "/regent/election"
    resources: ServedResources | None = None
    election_backoff_ms: int = 1_000
    election_backoff_max_ms: int = 60_000
    suspicion_backoff_ms: int = 30_000
    suspicion_backoff_max_ms: int = 3_600_000
    refusal_repair_backoff_ms: int = 5_000
    refusal_repair_attempts: int = 6

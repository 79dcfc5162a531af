"""What a plan does to each broker, and when: what a report shows besides the changes."""

from __future__ import annotations

from dataclasses import dataclass

from regent_rebalance.schedule import Schedule

KEPT, DRAINED, EXCLUDED, DEAD = "kept", "drained", "excluded", "dead"


@dataclass(frozen=True, slots=True)
class Load:
    """What a broker has: replicas, partitions that it leads, bytes of its replicas."""

    replicas: int
    leaders: int
    disk: int


@dataclass(frozen=True, slots=True)
class BrokerLoad:
    """A broker before and after a plan.

    Attributes:
        state: KEPT, DRAINED, EXCLUDED (from new replicas) or DEAD.
        capacity: Bytes of its disks, or -1.
        sent: Bytes that it sends as a leader while the plan is carried out.
        received: Bytes of its new replicas.
    """

    id: int
    rack: str
    state: str
    capacity: int
    sent: int
    received: int
    before: Load
    after: Load


@dataclass(frozen=True, slots=True)
class Details:
    """What is known of a plan once it is held against its snapshot.

    Attributes:
        assumptions: How the snapshot was changed before it was planned for; empty for a plan that
            can be carried out.
        replica_limits, leader_limits: Fewest and most that a broker is to have; None without such a
            goal.
        notes: Remarks on the loads that it was made from, and on goals about brokers and topics
            that the snapshot does not have, a sentence each.
    """

    assumptions: tuple[str, ...]
    replica_limits: tuple[int, int] | None
    leader_limits: tuple[int, int] | None
    brokers: tuple[BrokerLoad, ...]
    schedule: Schedule
    notes: tuple[str, ...] = ()

"""What every legal transition does, row by row, and that an illegal one does nothing.

The rows follow the comments of ``PartitionStateMachine.scala`` and ``ReplicaStateMachine.scala``:
what is written, who is sent which request, and what the controller remembers. The pairs of states
are written out here once more, so that an edit of the core's tables has to be made twice.
"""

from __future__ import annotations

from itertools import product
from typing import NamedTuple

import pytest

from regent.controller.state.states import PartitionState as P
from regent.controller.state.states import ReplicaState as R
from regent.controller.transitions import election
from regent.model.partition import NO_LEADER, LeaderAndIsr, TopicPartition
from tests.unit.controller.world import World, leader_and_isr, stop_replica

TP = TopicPartition("t", 0)
LATER = LeaderAndIsr(leader=2, leader_epoch=5, isr=(2, 1), controller_epoch=0, partition_epoch=0)
"""The state of a partition that has had a leader."""


class Effects(NamedTuple):
    """What follows from a transition.

    Attributes:
        stored: The state of the partition in ZooKeeper afterwards.
        leader_and_isr: Receiver -> isNew.
        announced: Whether the partition is in an UpdateMetadata to all live brokers.
        stopped: Leader epoch and deletePartition of a StopReplica; None if there is none.
        replicas: Those of the assignment afterwards.
        offline: OfflinePartitionsCount afterwards.
    """

    stored: LeaderAndIsr | None
    leader_and_isr: dict[int, bool] = {}  # noqa: RUF012 - never changed
    announced: bool = False
    stopped: tuple[int, bool] | None = None
    replicas: tuple[int, ...] = (3, 1, 2)
    offline: int = 0


def effects(world: World) -> tuple[object, ...]:
    """What has followed, in the order of the attributes of :class:`Effects`."""
    sent = world.driver.sent
    receivers = {b for requests in sent for b in requests.update_metadata_receivers}
    announced = any(TP in requests.partitions for requests in sent)
    assert receivers == ({1, 2} if sent and receivers else set()), "all live brokers, or none"
    stops = [(epoch, delete) for _, _, epoch, delete in stop_replica(sent)]
    assert len(stops) <= 1
    return (
        world.state(TP),
        {broker_id: named[TP] for broker_id, named in leader_and_isr(sent).items()},
        announced,
        stops[0] if stops else None,
    )


# Partitions: brokers 1 and 2 are live, broker 3, the preferred leader, is not.

FIRST = LeaderAndIsr(leader=1, leader_epoch=0, isr=(1, 2), controller_epoch=1, partition_epoch=0)
NEXT = LeaderAndIsr(leader=1, leader_epoch=6, isr=(2, 1), controller_epoch=1, partition_epoch=1)
ELECTED = Effects(NEXT, {1: False, 2: False}, announced=True)

PARTITIONS = {
    (P.NON_EXISTENT, P.NEW): Effects(None),
    (P.NEW, P.ONLINE): Effects(FIRST, {1: True, 2: True}, announced=True),
    (P.ONLINE, P.ONLINE): ELECTED,
    (P.OFFLINE, P.ONLINE): ELECTED,
    (P.NEW, P.OFFLINE): Effects(None, offline=1),
    (P.ONLINE, P.OFFLINE): Effects(LATER, offline=1),
    (P.OFFLINE, P.OFFLINE): Effects(LATER, offline=1),
    (P.OFFLINE, P.NON_EXISTENT): Effects(LATER),
}


@pytest.mark.parametrize(("before", "target"), list(product(P, P)))
@pytest.mark.parametrize("is_queued", [False, True], ids=["kept", "queued for deletion"])
def test_a_partition(before: P, target: P, *, is_queued: bool) -> None:
    world = World()
    world.start_broker(1, 2)
    world.create_topic("t", {0: (3, 1, 2)})
    if before in (P.ONLINE, P.OFFLINE):
        world.set_state(TP, LATER.leader, LATER.isr, leader_epoch=LATER.leader_epoch)
    active = world.load()
    active.context.set_partition_state(TP, before)
    if is_queued:
        active.context.queue_topic_for_deletion("t")
    counted, tree = active.context.offline_partition_count, world.zookeeper.dump()

    failures = world.run(active.partitions.handle_state_changes([TP], target, election.OFFLINE))

    count = active.context.offline_partition_count
    expected = PARTITIONS.get((before, target))
    if expected is None:
        assert failures == {TP: f"illegal transition from {before.name} to {target.name}"}
        assert active.context.partition_state(TP) is before
        assert (world.zookeeper.dump(), world.driver.sent) == (tree, [])
        assert count == counted
        (reported,) = world.log.errors("Illegal partition transition")
        assert (reported["state"], reported["target"]) == (before.name, target.name)
        return
    assert failures == {}
    assert world.log.errors("Illegal partition transition") == []
    assert active.context.partition_state(TP) is target
    assert effects(world) == expected[:4]
    assert active.context.cluster.replicas(TP) == expected.replicas
    assert count == (0 if is_queued else expected.offline)
    if target is P.ONLINE:
        assert active.context.cluster.leadership[TP] == expected.stored


# Replicas: that on broker 2, while broker 1 is live and broker 3 is not.

SHRUNK = LeaderAndIsr(leader=1, leader_epoch=6, isr=(1,), controller_epoch=1, partition_epoch=1)
LED_BY_1 = LeaderAndIsr(leader=1, leader_epoch=5, isr=(1, 2), controller_epoch=0, partition_epoch=0)
ONLINE_AGAIN = Effects(LED_BY_1, {2: False}, announced=True)
GONE = Effects(SHRUNK, {1: False}, announced=True, stopped=(6, False))
NOTHING = Effects(LED_BY_1)

REPLICAS = {
    (R.NON_EXISTENT, R.NEW): Effects(LED_BY_1, {2: True}, announced=True),
    (R.NEW, R.ONLINE): NOTHING,
    (R.ONLINE, R.ONLINE): ONLINE_AGAIN,
    (R.OFFLINE, R.ONLINE): ONLINE_AGAIN,
    (R.DELETION_INELIGIBLE, R.ONLINE): ONLINE_AGAIN,
    (R.NEW, R.OFFLINE): GONE,
    (R.ONLINE, R.OFFLINE): GONE,
    (R.OFFLINE, R.OFFLINE): GONE,
    (R.DELETION_INELIGIBLE, R.OFFLINE): GONE,
    (R.OFFLINE, R.DELETION_STARTED): Effects(LED_BY_1, stopped=(5, True)),
    (R.DELETION_STARTED, R.DELETION_SUCCESSFUL): NOTHING,
    (R.OFFLINE, R.DELETION_INELIGIBLE): NOTHING,
    (R.DELETION_STARTED, R.DELETION_INELIGIBLE): NOTHING,
    (R.DELETION_SUCCESSFUL, R.NON_EXISTENT): Effects(LED_BY_1, replicas=(3, 1)),
}
NEVER_LED = {
    pair: Effects(
        None,
        stopped=None if row.stopped is None else (-1, row.stopped[1]),
        replicas=row.replicas,
    )
    for pair, row in REPLICAS.items()
}
"""Without leadership nothing can be announced, and the broker is not to check the epoch."""

QUEUED = {
    pair: row._replace(
        leader_and_isr={} if row is GONE else row.leader_and_isr,
        stopped=None if row.stopped is None else (-2, row.stopped[1]),
    )
    for pair, row in REPLICAS.items()
}
"""Of a topic that is to be deleted the ISR shrinks all the same; the others do not hear of it."""


@pytest.mark.parametrize(("before", "target"), list(product(R, R)))
@pytest.mark.parametrize(
    ("rows", "has_leadership", "is_queued"),
    [(REPLICAS, True, False), (NEVER_LED, False, False), (QUEUED, True, True)],
    ids=["led", "never led", "queued for deletion"],
)
def test_a_replica(
    before: R,
    target: R,
    rows: dict[tuple[R, R], Effects],
    *,
    has_leadership: bool,
    is_queued: bool,
) -> None:
    world = World()
    world.start_broker(1, 2)
    world.create_topic("t", {0: (3, 1, 2)})
    if has_leadership:
        world.set_state(TP, LED_BY_1.leader, LED_BY_1.isr, leader_epoch=LED_BY_1.leader_epoch)
    active = world.load()
    active.context.set_replica_state(2, TP, before)
    if is_queued:
        active.context.queue_topic_for_deletion("t")
    tree = world.zookeeper.dump()

    world.run(active.replicas.handle_state_changes({2: [TP]}, target))

    expected = rows.get((before, target))
    if expected is None:
        assert active.context.replica_state(2, TP) is before
        assert (world.zookeeper.dump(), world.driver.sent) == (tree, [])
        assert active.context.cluster.replicas(TP) == (3, 1, 2)
        (reported,) = world.log.errors("Illegal replica transition")
        assert (reported["state"], reported["target"]) == (before.name, target.name)
        return
    assert world.log.errors("Illegal replica transition") == []
    assert active.context.replica_state(2, TP) is target
    assert effects(world) == expected[:4]
    assert active.context.cluster.replicas(TP) == expected.replicas
    if has_leadership:
        assert active.context.cluster.leadership[TP] == expected.stored


@pytest.mark.parametrize(
    "before", [R.NEW, R.ONLINE, R.OFFLINE, R.DELETION_INELIGIBLE], ids=lambda state: state.name
)
@pytest.mark.parametrize(
    ("isr", "left"), [((2, 1), (1,)), ((2,), (2,))], ids=["of two", "the last in sync"]
)
def test_a_leader_that_goes_offline(before: R, isr: tuple[int, ...], left: tuple[int, ...]) -> None:
    world = World()
    world.start_broker(1, 2)
    world.create_topic("t", {0: (3, 1, 2)})
    world.set_state(TP, 2, isr, leader_epoch=5)
    active = world.load()
    active.context.set_replica_state(2, TP, before)
    world.run(active.replicas.handle_state_changes({2: [TP]}, R.OFFLINE))
    stored = LeaderAndIsr(NO_LEADER, 6, left, controller_epoch=1, partition_epoch=1)
    assert effects(world) == Effects(stored, {1: False}, announced=True, stopped=(6, False))[:4]

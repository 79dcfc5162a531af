"""Short stories without chance, in each of which the controller is made to crash everywhere."""

from __future__ import annotations

from regent.admin.commands import (
    AlterPartitionReassignments,
    AlterTopicConfig,
    CreatePartitions,
    CreateTopic,
    DeleteTopic,
    ElectionType,
    ElectLeaders,
)
from regent.controller import events as e
from regent.controller.state.states import ReplicaState
from regent.model.partition import LeaderAndIsr, ReplicaAssignment, TopicPartition
from regent.model.topic_config import BrokerFacts
from regent.zk_data import paths
from regent.zk_data.operations import SetData
from regent.zk_data.topics import TopicZNode, decode_partition_state, decode_topic, encode_topic
from tests.simulation.driver import FIRST_CONTROLLER_ID
from tests.simulation.playing import Scenario
from tests.simulation.trace import require
from tests.simulation.workload import UNCLEAN
from tests.simulation.world import World


def _nothing(world: World) -> None:
    pass


def _topics(world: World) -> None:
    """Two topics: one that may elect uncleanly, one with a single replica each."""
    world.workload.create_topic("a", {0: (1, 2, 3), 1: (2, 3)})
    world.workload.create_topic("b", {0: (3,), 1: (1, 3)}, {UNCLEAN: "true"})
    world.settle()
    _produce_everywhere(world)


def _produce_everywhere(world: World) -> None:
    for broker in world.brokers.values():
        for tp, replica in broker.replicas.items():
            if replica.is_leader:
                world.replication.produce(broker, tp)


def _broker_3_is_down(world: World) -> None:
    _topics(world)
    world.settle()
    world.brokers[3].stop()


def _only_3_has_everything(world: World) -> None:
    """Brokers 1 and 2 have returned too late: 3, the last in sync of a-1, is gone."""
    _topics(world)
    world.settle()
    world.brokers[2].stop()
    world.settle()
    world.brokers[3].stop()
    world.settle()
    world.brokers[2].start()


def _fail_over(world: World) -> None:
    (process,) = world.regents
    process.put(e.NotEligible())
    process.put(e.Eligible())


def _create(world: World) -> None:
    world.workload.submit(
        CreateTopic("c", partitions=3, replication_factor=2),
        CreateTopic("d", partitions=1, replication_factor=3, config={UNCLEAN: "true"}),
    )


def _create_by_hand(world: World) -> None:
    world.workload.create_topic("c", {0: (3, 1), 1: (1, 3), 2: (3,)})


def _create_on_the_controller(world: World) -> None:
    ours = FIRST_CONTROLLER_ID
    world.workload.create_topic("c", {0: (ours, 1), 1: (3, ours), 2: (ours,), 3: (1, 2, 3)})


def _register_and_hand_over(world: World) -> None:
    """A broker says that it looks for the controller in ``/brokers/ids``."""
    (process,) = world.regents
    if process.controller.active is None:
        return
    epoch = process.controller.active.context.cluster.brokers[1].epoch
    facts = BrokerFacts(broker_id=1, versions=((2, 8),), has_answered=True)
    process.put(e.BrokerFactsLearned(epoch, facts))
    process.put(e.NotEligible())
    process.put(e.Eligible())


def _grow(world: World) -> None:
    world.workload.submit(CreatePartitions("a", total=4))


def _allow_unclean(world: World) -> None:
    world.workload.submit(AlterTopicConfig("a", set={UNCLEAN: "true"}))


def _delete(world: World) -> None:
    world.workload.submit(DeleteTopic("a"), DeleteTopic("b"))


def _delete_until_return(world: World) -> None:
    _delete(world)
    world.settle()
    world.brokers[3].start()


def _recreate(world: World) -> None:
    _delete(world)
    world.settle()
    world.workload.submit(CreateTopic("e", partitions=2, replication_factor=2))


def _recreate_until_return(world: World) -> None:
    """A topic of the former name gets broker 3, which is still away, as a replica."""
    _delete(world)
    world.settle()
    world.workload.create_topic("a", {0: (1, 3), 1: (3, 2)})
    world.settle()
    world.brokers[3].start()


def _recreate_after_return(world: World) -> None:
    """Broker 3 is back before the topic of the former name is created, which it leads."""
    _delete_until_return(world)
    world.settle()
    world.workload.create_topic("a", {0: (3, 1), 1: (2, 3)})
    world.settle()
    _produce_everywhere(world)


def _damaged(world: World) -> None:
    """A controller that has come to power since cannot read the state of a partition."""
    _topics(world)
    world.settle()
    world.faults.damage(paths.partition_state(TopicPartition("a", 0)))
    _fail_over(world)


def _crash_of_a_broker(world: World) -> None:
    world.brokers[1].crash()
    world.settle()
    world.brokers[1].start()


def _bounce(world: World) -> None:
    world.brokers[1].stop()
    world.brokers[1].start()


def _two_brokers(world: World) -> None:
    world.brokers[2].stop()
    world.brokers[3].stop()
    world.settle()
    world.brokers[3].start()
    world.brokers[2].start()


def _log_dir(world: World) -> None:
    _fail_log_dir(world, 3, list(world.brokers[3].replicas))


def _log_dir_of_leaders(world: World) -> None:
    """Some of its partitions remain: the broker lives on."""
    _fail_log_dir(world, 1, [TopicPartition("a", 0)])
    world.brokers[1].stop()
    world.brokers[1].start()


def _fail_log_dir(world: World, broker_id: int, partitions: list[TopicPartition]) -> None:
    """Without waiting for any restart others lead, and are in sync, if there are any."""
    world.brokers[broker_id].fail_log_dir(partitions)
    world.settle()
    for tp in partitions:
        state = _state(world, tp)
        require(state.leader != broker_id, f"{tp} is led from a failed log dir: {state}")
        require(
            state.isr == (broker_id,) or broker_id not in state.isr,
            f"{tp} has a replica in sync on a failed log dir: {state}",
        )
        require(state.leader in state.isr or state.isr == (broker_id,), f"{tp} has no leader")


def _state(world: World, tp: TopicPartition) -> LeaderAndIsr:
    path = paths.partition_state(tp)
    node = world.zookeeper.get(path)
    assert node is not None
    return decode_partition_state(path, node)


def _leaders_have_moved(world: World) -> None:
    """Broker 1 has restarted and leads nothing."""
    _topics(world)
    world.settle()
    _crash_of_a_broker(world)
    world.settle()
    require(_state(world, _A0).leader != 1, "broker 1 leads again by itself")


def _elect_preferred_leaders(world: World) -> None:
    unborn, gone = TopicPartition("c", 0), TopicPartition("nobody", 0)
    world.workload.create_topic("c", {0: (9, 8)})
    world.workload.elect_preferred_leaders([gone, unborn, _A0, _B1])
    world.settle()
    for tp in (_A0, _B1):
        require(_state(world, tp).leader == 1, f"{tp} is not led by its preferred replica")


def _elect_by_commands(world: World) -> None:
    world.workload.submit(ElectLeaders(ElectionType.PREFERRED))
    world.settle()
    world.workload.submit(ElectLeaders(ElectionType.PREFERRED, (_A0, _B1)))


def _elect_uncleanly(world: World) -> None:
    world.workload.submit(ElectLeaders(ElectionType.UNCLEAN, (TopicPartition("a", 1),)))


_A0, _B1 = TopicPartition("a", 0), TopicPartition("b", 1)


def _disconnection(world: World) -> None:
    (process,) = world.regents
    process.client.disconnect()
    world.lost_contact(process.client)
    world.workload.create_topic("c", {0: (1, 2)})
    world.brokers[1].stop()
    world.brokers[1].start()


def _refusing_broker(world: World) -> None:
    broker = world.brokers[2]
    broker.refuses.update(dict.fromkeys(broker.replicas))
    world.brokers[3].stop()  # the ISRs shrink, which broker 2 does not follow
    world.settle()
    broker.stop()
    world.settle()
    broker.start()
    world.brokers[3].start()


A0, A1, B0, B1 = (TopicPartition(topic, p) for topic in "ab" for p in (0, 1))
ELSEWHERE: dict[TopicPartition, tuple[int, ...]] = {A0: (3, 1), A1: (1, 2), B0: (1,), B1: (3, 2)}
"""Another place for each partition: fewer, other, and more replicas."""


def _late_refusal(world: World) -> None:
    """A broker refuses a deletion, restarts and is asked again; then its refusal comes late."""
    broker, tp = world.brokers[2], TopicPartition("a", 0)
    broker.refuses.update(dict.fromkeys(broker.replicas))
    _delete(world)
    world.settle()
    broker.stop()
    broker.start()
    world.settle(until=lambda: _is_being_deleted(world, broker.broker_id, tp))
    while world.network.deliver_late_answer():
        pass


def _is_being_deleted(world: World, broker_id: int, tp: TopicPartition) -> bool:
    """Whether a broker has been asked to delete a replica, and nobody has answered yet."""
    active = world.regents[0].controller.active
    return (
        active is not None
        and active.context.replica_state(broker_id, tp) is ReplicaState.DELETION_STARTED
    )


def _reassign(world: World) -> None:
    world.workload.reassign(ELSEWHERE)


def _reassign_throttled(world: World) -> None:
    """A target fails on the way, and another move asks for another rate meanwhile."""
    world.workload.reassign({A1: (2, 1), B0: (1,), B1: (1, 2)}, throttle=7_000)
    world.settle(until=lambda: _is_moving(world, B1))
    world.brokers[2].stop()
    world.settle()
    world.workload.reassign({A0: (1, 3), B0: (3, 1)}, throttle=5_000)
    world.settle()
    world.brokers[2].start()


def _is_moving(world: World, tp: TopicPartition) -> bool:
    active = world.regents[0].controller.active
    return active is not None and tp in active.context.cluster.partitions_being_reassigned


def _change_replicas(world: World) -> None:
    """As many as there are brokers, and then one each."""
    world.workload.change_replicas("a", {0: (1, 2, 3), 1: (2, 3, 1)})
    world.settle()
    world.workload.change_replicas("a", {0: (1,), 1: (2,)})


def _ask_for_reassignment(world: World) -> None:
    """By the znode; one of the targets is down."""
    world.brokers[2].stop()
    world.settle()
    world.workload.request_reassignment(ELSEWHERE)
    world.settle()
    world.brokers[2].start()


def _change_of_mind(world: World) -> None:
    """On the way to a broker that is down another target is given, and the rest is cancelled."""
    world.brokers[2].stop()
    world.settle()
    world.workload.request_reassignment({A0: (2, 3), A1: (2, 1), B0: (2, 1), B1: (1, 2)})
    world.settle()
    world.workload.submit(AlterPartitionReassignments({A0: None, B0: None, B1: None}))
    world.workload.reassign({A1: (3,)})
    world.settle()
    world.brokers[2].start()


def _delete_on_the_way(world: World) -> None:
    world.brokers[2].stop()
    world.settle()
    world.workload.request_reassignment({A0: (2, 3), A1: (2, 1), B0: (2, 1), B1: (1, 2)})
    world.settle()
    _delete(world)
    world.settle()
    world.brokers[2].start()


def _refuse_for_a_while(world: World, *, whole_requests: bool = False) -> None:
    """Nobody restarts the broker."""
    broker = world.brokers[2]
    broker.refuses.update(dict.fromkeys(broker.replicas))
    broker.refuses_whole_requests = broker.fails_halfway = whole_requests
    world.clock.after(5_000, broker.refuses.clear)
    world.brokers[3].stop()  # the ISRs shrink, and broker 2 does not follow
    world.settle()
    world.brokers[3].start()


def _fail_at_requests_for_a_while(world: World) -> None:
    _refuse_for_a_while(world, whole_requests=True)


def _topics_with_ids(world: World) -> None:
    world.protocol = (2, 8)
    for process in world.regents:
        process.put(e.NotEligible())
        process.put(e.Eligible())
    world.settle()
    _topics(world)


def _rewrite_topics(world: World) -> None:
    """As a client of Kafka 2.4 to 2.7 does that adds a partition: it knows no topic ids."""
    for topic in ("a", "b"):
        (node,) = [world.zookeeper.get(paths.topic(topic))]
        assert node is not None
        znode = decode_topic(topic, node.data)
        replicas = {2: ReplicaAssignment((1, 2))}
        rewritten = TopicZNode(None, znode.assignments | replicas)
        world.workload.multi(SetData(paths.topic(topic), encode_topic(rewritten)))


def _rewrite_topics_unseen(world: World) -> None:
    """While nobody is the controller."""
    (process,) = world.regents
    process.put(e.NotEligible())
    world.settle()
    _rewrite_topics(world)
    process.put(e.Eligible())


def _delete_behind_a_failed_disk(world: World) -> None:
    """Broker 3 starts without the disk that the deleted topic is on."""
    _delete(world)
    world.settle()
    _start_without_a_disk_and_with_it(world)


def _start_without_a_disk_and_with_it(world: World) -> None:
    broker = world.brokers[3]
    broker.lose_disk([A0])
    broker.start()
    world.settle()
    broker.stop()
    broker.mend_disk()
    broker.start()


def _disk_returns_during_deletion(world: World) -> None:
    """Broker 3 starts without a disk while a deletion waits for broker 2, and once more with it."""
    refusing, broker = world.brokers[2], world.brokers[3]
    refusing.refuses.update(dict.fromkeys(refusing.replicas))
    broker.stop()
    world.settle()
    _delete(world)
    world.settle()
    _start_without_a_disk_and_with_it(world)
    world.settle()
    refusing.refuses.clear()
    refusing.stop()
    refusing.start()


SCENARIOS: dict[str, Scenario] = {
    "reassignment": Scenario(_topics, _reassign),
    "throttled reassignment": Scenario(_topics, _reassign_throttled),
    "another replication factor": Scenario(_topics, _change_replicas),
    "reassignment to a broker that is down": Scenario(_topics, _ask_for_reassignment),
    "reassignment to another target, or cancelled": Scenario(_topics, _change_of_mind),
    "reassignment of a topic that is deleted": Scenario(_topics, _delete_on_the_way),
    "failover": Scenario(_topics, _fail_over),
    "failover with a broker down": Scenario(_broker_3_is_down, _fail_over),
    "creation by commands": Scenario(_nothing, _create),
    "creation by hand with a broker down": Scenario(_broker_3_is_down, _create_by_hand),
    "creation on the controller": Scenario(_topics, _create_on_the_controller, announces=True),
    "a registration, and a hand-over": Scenario(_topics, _register_and_hand_over, announces=True),
    "growth": Scenario(_topics, _grow),
    "unclean election is allowed": Scenario(_only_3_has_everything, _allow_unclean),
    "deletion": Scenario(_topics, _delete),
    "deletion while a broker is away": Scenario(_broker_3_is_down, _delete_until_return),
    "a topic again while a broker is away": Scenario(_broker_3_is_down, _recreate_until_return),
    "deletion, and an answer comes late": Scenario(_topics, _late_refusal),
    "a topic again after a broker was away": Scenario(_broker_3_is_down, _recreate_after_return),
    "deletion and another topic": Scenario(_topics, _recreate),
    "deletion of what cannot be read": Scenario(_damaged, _delete, is_whole_before=False),
    "a broker crashes and returns": Scenario(_topics, _crash_of_a_broker),
    "a broker bounces": Scenario(_topics, _bounce),
    "two brokers go and return": Scenario(_topics, _two_brokers),
    "unclean election by command": Scenario(_only_3_has_everything, _elect_uncleanly),
    "preferred election by hand": Scenario(_leaders_have_moved, _elect_preferred_leaders),
    "preferred election by commands": Scenario(_leaders_have_moved, _elect_by_commands),
    "leaders are out of balance": Scenario(_topics, _crash_of_a_broker, balance_check_s=5),
    "a log directory fails": Scenario(_topics, _log_dir),
    "a log directory of leaders fails": Scenario(_topics, _log_dir_of_leaders),
    "a broker refuses, and is restarted": Scenario(_topics, _refusing_broker),
    "a disconnection": Scenario(_topics, _disconnection),
    "deletion behind a failed disk": Scenario(_broker_3_is_down, _delete_behind_a_failed_disk),
    "a disk returns during a deletion": Scenario(_topics, _disk_returns_during_deletion),
    "topics are rewritten without their ids": Scenario(_topics_with_ids, _rewrite_topics),
    "topics lose their ids unseen": Scenario(_topics_with_ids, _rewrite_topics_unseen),
    "a broker refuses for a while": Scenario(_topics, _refuse_for_a_while),
    "a broker fails at requests for a while": Scenario(_topics, _fail_at_requests_for_a_while),
}

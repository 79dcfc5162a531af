"""What must be true once faults have ended and everybody had time to do what there is to do."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from regent.controller.configs.unclean_election_config import load_unclean_election_default
from regent.controller.state.context import ControllerContext
from regent.controller.state.states import PartitionState, ReplicaState
from regent.controller.term import cluster_loading
from regent.controller.transitions.partition_state_machine import PartitionStateMachine
from regent.controller.transitions.partition_state_znodes import read_partition_states
from regent.model.cluster import Broker
from regent.model.partition import LeaderAndIsr, TopicPartition
from regent.model.topic import TOPIC_IDS_SINCE
from regent.zk_data import paths
from regent.zk_data.controller import decode_controller
from regent.zk_data.reassign_partitions import decode_reassign_partitions
from regent.zk_data.stray_replicas import strays_on
from tests.simulation.broker import SimulatedBroker
from tests.simulation.checkers.throttles import check_throttles
from tests.simulation.driver import RegentProcess
from tests.simulation.trace import TracingLog, require
from tests.simulation.tree_reader import TreeReader

if TYPE_CHECKING:
    from tests.simulation.world import World


def check_converged(world: World) -> None:
    """Raise unless the cluster is whole: everything online, in sync, known to all, deleted if so
    asked, and the controller's context is what a fresh load would give."""
    process = _only_active(world)
    loaded = load_afresh(world, process)
    _check_context(process, loaded, world.safety.seen.misplaced)
    _check_nothing_is_pending(world)
    _check_partitions(world, loaded)
    if process.config.auto_leader_rebalance_enable:
        _check_balance(loaded, process.config.leader_imbalance_per_broker_percentage)
    _check_deletions(world, loaded)
    _check_requests(world, loaded)
    check_throttles(world, loaded)
    world.orderly_stops.check_converged()
    check_brokers_obey(world, loaded.term.epoch)
    for broker in world.brokers.values():
        if broker.is_running:
            _check_broker(world, broker, loaded, process)
    if world.protocol >= TOPIC_IDS_SINCE:
        without = [t for t in loaded.cluster.topics if t not in loaded.cluster.topic_ids]
        require(not without, f"topics without an id: {without}")


def check_brokers_obey(world: World, epoch: int) -> None:
    """Raise unless every broker has heard of the controller of that epoch."""
    for broker in world.brokers.values():
        heard = broker.controller_epoch
        require(not broker.is_running or heard == epoch, f"{broker} obeys {heard}, not {epoch}")


def _only_active(world: World) -> RegentProcess:
    active = [p for p in world.regents if p.is_alive and p.is_active]
    require(len(active) == 1, f"active controllers: {active}")
    (process,) = active
    node = world.zookeeper.get(paths.CONTROLLER)
    require(
        node is not None
        and node.ephemeral_owner == process.client.session_id
        and decode_controller(node.data) == process.config.controller_id,
        f"{process} is active, but {paths.CONTROLLER} is {node}",
    )
    return process


def _check_nothing_is_pending(world: World) -> None:
    for process in world.regents:
        require(not process.is_alive or process.is_idle, process.describe())
    require(world.network.is_idle, f"requests on their way: {world.network.describe()}")
    require(world.endpoint.is_idle, f"calls on their way: {world.endpoint.describe()}")
    for broker in world.brokers.values():
        if broker.is_running:
            _check_asks_nothing(world, broker)
    require(not world.workload.unanswered, f"unanswered: {world.workload.unanswered}")
    for parent in (paths.ISR_CHANGE_NOTIFICATION, paths.LOG_DIR_EVENT_NOTIFICATION):
        children = world.zookeeper.children(parent)
        require(not children, f"nobody reads {parent}: {children}")
    request = world.zookeeper.get(paths.PREFERRED_REPLICA_ELECTION)
    require(request is None, f"nobody elects preferred leaders: {request}")


# The context


def load_afresh(world: World, process: RegentProcess) -> ControllerContext:
    """The context as a failover would load it now."""
    active = process.controller.active
    assert active is not None
    context = ControllerContext(active.context.term)
    reader, log = TreeReader(world.zookeeper), TracingLog(world.trace, "checker")
    context.add_live_brokers(reader.run(cluster_loading.read_brokers(log)).values())
    topics, problems = reader.run(
        cluster_loading.read_topics(world.zookeeper.children(paths.BROKER_TOPICS), log)
    )
    context.cluster.note_unreadable(problems)
    for topic, znode in topics.items():
        context.cluster.add_topic(topic, znode.topic_id)
        for partition, assignment in znode.assignments.items():
            context.set_assignment(TopicPartition(topic, partition), assignment)
    states = reader.run(read_partition_states(list(context.cluster.all_partitions()), log))
    context.cluster.load_leadership(states.states)
    for topic in world.zookeeper.children(paths.DELETE_TOPICS):
        if context.cluster.has_topic(topic):
            context.queue_topic_for_deletion(topic)
    reader.run(
        load_unclean_election_default(context, process.config.unclean_leader_election_enable, log)
    )
    reader.run(PartitionStateMachine(context, log).startup_states())
    for tp in context.cluster.all_partitions():
        for broker_id in context.cluster.replicas(tp):
            live = context.is_broker_online(broker_id)
            context.set_replica_state(
                broker_id, tp, ReplicaState.ONLINE if live else ReplicaState.OFFLINE
            )
    return context


def _check_context(
    process: RegentProcess, loaded: ControllerContext, misplaced: Collection[TopicPartition]
) -> None:
    active = process.controller.active
    assert active is not None
    context = active.context
    pairs: list[tuple[str, object, object]] = [
        ("brokers", dict(context.cluster.brokers), _brokers_of(loaded)),
        ("topic ids", dict(context.cluster.topic_ids), dict(loaded.cluster.topic_ids)),
        ("assignments", _assignments_of(context), _assignments_of(loaded)),
        (
            "unreadable topics",
            dict(context.cluster.unreadable_topics),
            dict(loaded.cluster.unreadable_topics),
        ),
        ("leadership", dict(context.cluster.leadership), dict(loaded.cluster.leadership)),
        ("queued", sorted(context.topics_to_be_deleted), sorted(loaded.topics_to_be_deleted)),
        (
            "unclean default",
            context.cluster.unclean_leader_election_default,
            loaded.cluster.unclean_leader_election_default,
        ),
        ("partition states", _settled_states(context), _settled_states(loaded)),
        ("replica states", _settled_replicas(context), _settled_replicas(loaded)),
    ]
    if not misplaced:
        offline = (context.offline_partition_count, loaded.offline_partition_count)
        pairs.append(("offline", *offline))
    pairs.append(("shutting down", list(context.shutting_down_broker_ids), []))
    pairs.append(("refusals", context.refusals.sample(), ()))
    for what, have, want in pairs:
        if isinstance(have, dict) and isinstance(want, dict):
            have, want = ({k: v for k, v in d.items() if k not in misplaced} for d in (have, want))
        require(have == want, f"{process}: {what} are {_difference(have, want)} loaded again")


def _difference(have: object, want: object) -> str:
    if isinstance(have, dict) and isinstance(want, dict):
        keys = [key for key in {**have, **want} if have.get(key) != want.get(key)]
        return ", ".join(f"{key}: {have.get(key)} but {want.get(key)}" for key in keys)
    return f"{have} but {want}"


def _brokers_of(context: ControllerContext) -> dict[int, Broker]:
    return dict(context.cluster.brokers)


def _assignments_of(context: ControllerContext) -> dict[str, dict[TopicPartition, object]]:
    """Of topics that are to be deleted only the replicas: they are not moved any further."""
    return {
        topic: {
            tp: assignment.replicas if context.is_topic_queued_for_deletion(topic) else assignment
            for tp, assignment in context.cluster.partitions_of(topic).items()
        }
        for topic in context.cluster.topics
    }


def _settled_states(context: ControllerContext) -> dict[TopicPartition, PartitionState]:
    """Partition states, but of topics that wait for their deletion."""
    return {
        tp: context.partition_state(tp)
        for tp in context.cluster.all_partitions()
        if not context.is_topic_queued_for_deletion(tp.topic)
    }


def _settled_replicas(
    context: ControllerContext,
) -> dict[tuple[int, TopicPartition], ReplicaState]:
    """Replica states likewise. On a broker that is down a replica may be held to be online if it
    was created meanwhile: Kafka's state machine has it so, and liveness decides everywhere."""
    return {
        (broker_id, tp): context.replica_state(broker_id, tp)
        for tp in context.cluster.all_partitions()
        if not context.is_topic_queued_for_deletion(tp.topic)
        for broker_id in context.cluster.replicas(tp)
        if context.is_broker_online(broker_id)
    }


# The cluster


def _check_partitions(world: World, loaded: ControllerContext) -> None:
    live = loaded.live_broker_ids
    for tp in loaded.cluster.all_partitions():
        if loaded.is_topic_queued_for_deletion(tp.topic) or tp in world.safety.seen.misplaced:
            continue
        assignment = loaded.cluster.assignment(tp)
        assert assignment is not None
        replicas = [r for r in assignment.replicas if r in live]
        leadership = loaded.cluster.leadership.get(tp)
        if leadership is None:
            require(not replicas, f"{tp} was never born although {replicas} are live")
            continue
        if not any(member in live for member in leadership.isr):
            may_be_unclean = world.safety.unclean.is_enabled(tp.topic) and replicas
            require(not may_be_unclean, f"{tp} has no leader, not even an unclean one")
            continue
        require(leadership.leader in live, f"{tp} has no leader: {leadership}")
        require(
            set(leadership.isr) == set(replicas),
            f"ISR of {tp} is {leadership.isr}, live are {replicas}",
        )
        waits = [b for b in assignment.target_replicas if b not in live]
        require(
            waits or not assignment.is_being_reassigned,
            f"{tp} is on its way for ever: {assignment}",
        )
        leader_log = world.brokers[leadership.leader].logs[tp]
        for member in leadership.isr:
            log = world.brokers[member].logs[tp]
            require(log.records == leader_log.records, f"{tp} differs on {member}")


def _check_requests(world: World, loaded: ControllerContext) -> None:
    """What was asked for has arrived, or waits for a broker that is down."""
    node = world.zookeeper.get(paths.REASSIGN_PARTITIONS)
    if node is None:
        return
    for tp, target in decode_reassign_partitions(node.data).targets.items():
        assignment = loaded.cluster.assignment(tp)
        require(
            assignment is not None
            and assignment.is_being_reassigned
            and assignment.target_replicas == target,
            f"{tp} is still to go to {target}: {assignment}",
        )


def _check_balance(loaded: ControllerContext, percentage: int) -> None:
    """No broker lacks more leaders than may be: those that it could lead, it leads."""
    for broker_id in loaded.live_broker_ids:
        preferring = [
            tp
            for tp in loaded.cluster.all_partitions()
            if loaded.cluster.replicas(tp)[:1] == (broker_id,)
            and not loaded.is_topic_queued_for_deletion(tp.topic)
        ]
        led_by_others = [
            tp
            for tp in preferring
            if tp in loaded.cluster.leadership and loaded.cluster.leadership[tp].leader != broker_id
        ]
        if len(led_by_others) * 100 > percentage * len(preferring):
            movable = [tp for tp in led_by_others if broker_id in loaded.cluster.leadership[tp].isr]
            require(not movable, f"leaders are out of balance: {broker_id} could lead {movable}")


def _check_deletions(world: World, loaded: ControllerContext) -> None:
    """Nothing waits for a broker that is down, and those that are up have nothing left."""
    for topic in world.zookeeper.children(paths.DELETE_TOPICS):
        junk = topic.startswith("junk")  # could not be read when it was marked, now it is gone
        require(junk, f"{topic} is not deleted")
    for broker_id in loaded.live_broker_ids:
        broker = world.brokers[broker_id]
        if broker.failed or broker.unseen:  # the replicas may come back with the disk
            continue
        topics = world.zookeeper.children(strays_on(broker_id))
        # A topic that is created again while it is deleted, by hand, leaves a note until the next
        # start of the broker.
        by_hand = world.safety.seen.removed_by_hand
        left = [
            t
            for t in topics
            if t not in by_hand and not _may_have_been_the_only_one(world, broker, t, loaded)
        ]
        require(not left, f"broker {broker_id} still has strays of {left}")


def _may_have_been_the_only_one(
    world: World, broker: SimulatedBroker, topic: str, loaded: ControllerContext
) -> bool:
    """Whether another host of a topic has started later than this one: when this one started,
    perhaps none of the ISR was alive, and its note stays until it starts again."""
    return any(
        world.brokers[replica].epoch > broker.epoch
        for assignment in loaded.cluster.partitions_of(topic).values()
        if broker.broker_id in assignment.replicas
        for replica in assignment.replicas
    )


def _check_broker(
    world: World, broker: SimulatedBroker, loaded: ControllerContext, process: RegentProcess
) -> None:
    require(broker.controller_id == process.config.controller_id, f"{broker} obeys another")
    require(broker.known_brokers == _brokers_of(loaded), f"{broker} knows {broker.known_brokers}")
    for tp in loaded.cluster.all_partitions():
        if loaded.is_topic_queued_for_deletion(tp.topic) or tp in world.safety.seen.misplaced:
            continue
        leadership = loaded.cluster.leadership.get(tp)
        have = broker.metadata.get(tp)
        require(have == leadership, f"{broker} has {tp} as {have}, it is {leadership}")
        leader = None if leadership is None else leadership.leader
        is_led = leadership is not None and leader in loaded.cluster.brokers
        if is_led and broker.broker_id in loaded.cluster.replicas(tp):
            assert leadership is not None
            _check_replica(broker, tp, leadership)
    for tp in broker.metadata:
        # A broker that the announcement of a deletion did not reach before the controller changed
        # keeps the entry: nobody knows of the topic any more. Kafka has it so, too.
        # So does one that lives on while it is taken for dead, and one of a topic whose node
        # somebody removes by hand.
        deleted_under = world.safety.seen.deleted_under.get(tp.topic, loaded.term.epoch)
        removed = tp.topic in world.safety.seen.removed_by_hand
        forgotten = removed or deleted_under < loaded.term.epoch
        excused = loaded.cluster.assignment(tp) or forgotten or broker.was_away
        require(excused, f"{broker} still announces {tp}")
    for tp, log in broker.logs.items():
        is_hosted = broker.broker_id in loaded.cluster.replicas(tp)
        if not is_hosted and world.safety.may_keep(broker, tp):
            continue
        known = loaded.cluster.topic_ids.get(tp.topic)
        has_topic = loaded.cluster.has_topic(tp.topic)
        knows_ids = world.protocol >= TOPIC_IDS_SINCE and has_topic
        require(
            not knows_ids or log.topic_id == known or loaded.is_topic_queued_for_deletion(tp.topic),
            f"{broker} has {tp} under the id {log.topic_id}, it is {known}",
        )
        by_hand = tp.topic in world.safety.seen.removed_by_hand
        require(is_hosted or by_hand, f"{broker} keeps {tp}, which it does not host")


def _check_asks_nothing(world: World, broker: SimulatedBroker) -> None:
    """Whatever it has asked the controller, it has an answer that it can go on with."""
    removed = world.safety.seen.removed_by_hand
    pending = [
        tp
        for tp, replica in broker.replicas.items()
        if replica.pending is not None and tp.topic not in removed
    ]
    require(not pending, f"{broker} waits for ever for the ISR of {pending}")
    requests = broker.requests
    is_idle = requests.is_idle and requests.isr_changes.is_idle
    require(is_idle, f"{broker} has requests that the controller does not answer")


def _check_replica(broker: SimulatedBroker, tp: TopicPartition, leadership: LeaderAndIsr) -> None:
    replica = broker.replicas.get(tp)
    require(replica is not None, f"{broker} does not host {tp}")
    assert replica is not None
    require(
        replica.state.leader_epoch == leadership.leader_epoch
        and replica.state.leader == leadership.leader,
        f"{broker} has {tp} at {replica.state}, it is at {leadership}",
    )
    if leadership.leader == broker.broker_id:
        require(replica.is_leader, f"{broker} does not lead {tp}")
        require(replica.state == leadership, f"{broker} leads {tp} by {replica.state}")
    else:
        require(replica.is_fetching, f"{broker} does not follow the leader of {tp}")

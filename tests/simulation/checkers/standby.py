"""What a take-over gets from the standby's cache is what it would have read."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from regent.cluster.reads import DirtyNodes
from regent.controller.state.cluster_state import ClusterState
from regent.controller.state.context import ControllerContext
from regent.controller.state.standby_copy import NOT_TAKEN, StandbyCopy
from regent.controller.state.term import Term
from regent.controller.term import cluster_loading
from regent.controller.term.cluster_loading import StatesLoaded
from regent.zk_data import paths
from tests.simulation.trace import TracingLog, require
from tests.simulation.tree_reader import TreeReader
from tests.support.leadership_entries import entries_of

if TYPE_CHECKING:
    from tests.simulation.world import World


def check_copy(world: World, name: str, copy: StandbyCopy, *, changed_since: Iterable[str]) -> None:
    """Raise unless the copy is what reading everything gives now, but for changes that came later
    by writers that no election fences. The controller learns of these as after any reading.
    """
    changed = DirtyNodes()
    changed.add(changed_since)
    truth, states = _read_everything(world, name)
    listed = world.zookeeper.children(paths.BROKER_TOPICS)
    different = [t for t in listed if t not in copy.topic_mzxids]
    different += [t for t in sorted(copy.topic_mzxids) if t not in listed]
    require(
        all(topic in changed.topics for topic in different),
        f"{name}: the standby has other topics than ZooKeeper: {different}",
    )
    for topic in dict.fromkeys((*truth.topics, *copy.cluster.topics)):
        if topic not in changed.topics:
            _check_topic(name, topic, copy.cluster, truth)
            _check_mzxid(world, name, topic, copy.topic_mzxids[topic])
    for topic in dict.fromkeys((*truth.unreadable_topics, *copy.cluster.unreadable_topics)):
        if topic not in changed.topics:
            known = copy.cluster.unreadable_topics.get(topic)
            why = truth.unreadable_topics.get(topic)
            require(known == why, f"{name}: {topic} is unreadable: {why}, to the standby: {known}")
    _check_prepared(name, copy.cluster)
    _check_entries(name, copy.cluster)
    malformed = [paths.partition_of_state(error.path) for error in copy.malformed_states]
    for tp in (*truth.all_partitions(), *copy.cluster.all_partitions()):
        if tp in changed.states or tp.topic in changed.topics:
            continue
        have, want = copy.cluster.leadership.get(tp), truth.leadership.get(tp)
        require(have == want, f"{name}: the standby has {tp} as {have}, ZooKeeper as {want}")
        require(
            (tp in malformed) == (tp in states.unreadable),
            f"{name}: the standby holds {tp} to be {'un' * (tp in malformed)}readable",
        )
        if want is not None:
            mzxid = copy.state_mzxids[tp]
            require(
                mzxid == states.mzxids[tp],
                f"{name}: the standby has {tp} of transaction {mzxid:#x}, ZooKeeper of "
                f"{states.mzxids[tp]:#x}",
            )


def _read_everything(world: World, name: str) -> tuple[ClusterState, StatesLoaded]:
    context = ControllerContext(Term(0, 0, 0))
    reader, log = TreeReader(world.zookeeper), TracingLog(world.trace, f"{name} checker")
    listed = world.zookeeper.children(paths.BROKER_TOPICS)
    found, problems = reader.run(cluster_loading.read_topics(listed, log))
    partitions = cluster_loading.add_topics(context, found)
    context.cluster.note_unreadable(problems)
    states = reader.run(cluster_loading.load_leadership(context, partitions, log))
    return context.cluster, states


def _check_topic(name: str, topic: str, copied: ClusterState, truth: ClusterState) -> None:
    have, want = _described(topic, copied), _described(topic, truth)
    require(have == want, f"{name}: the standby has {topic} as {have}, ZooKeeper as {want}")


def _check_prepared(name: str, copied: ClusterState) -> None:
    """What the copy has prepared for brokers is what it knows."""
    for tp, state in copied.announced_states.items():
        assignment, current = copied.assignment(tp), copied.leadership.get(tp)
        require(
            (state.partition, state.leader_and_isr, state.assignment)
            == (tp.partition, current, assignment),
            f"{name}: the standby has prepared {tp} as {state}, but knows {current}, {assignment}",
        )


def _check_entries(name: str, copied: ClusterState) -> None:
    """What is collected for LeaderAndIsr requests is what they would be made of."""
    collected, states = copied.announced_states.entries, copied.announced_states
    for broker_id, some in ({} if collected is None else collected.up_to_date).items():
        for topic, entries in some.topics.items():
            partitions = copied.partitions_of(topic)
            want = [tp for tp, a in partitions.items() if broker_id in a.replicas]
            require(
                all(tp in states for tp in want)
                and entries_of(want, states, suffix=some.suffix).topics == {topic: entries},
                f"{name}: the standby has collected other entries of {topic} for {broker_id} than"
                f" of {want}",
            )


def _check_mzxid(world: World, name: str, topic: str, mzxid: int) -> None:
    """A node with the mzxid of the copy is not decoded when its watch is set."""
    node = world.zookeeper.get(paths.topic(topic))
    stored = None if node is None else node.mzxid
    require(
        mzxid in (stored, NOT_TAKEN),
        f"{name}: the standby has {topic} by transaction {mzxid}, ZooKeeper by {stored}",
    )


def _described(topic: str, cluster: ClusterState) -> tuple[object, ...]:
    partitions = dict(cluster.partitions_of(topic))
    topic_id = cluster.topic_ids.get(topic)
    return (
        topic_id,
        None if topic_id is None else cluster.topic_name(topic_id),
        cluster.topic_czxids.get(topic),
        partitions,
        [tp for tp in partitions if tp in cluster.partitions_being_reassigned],
        cluster.has_topic(topic),
    )

"""From a fired watch, or a change of the session, to the event that looks at what happened."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from regent.controller.events import (
    BrokerChange,
    BrokerModifications,
    ClusterIdChange,
    ConfigChange,
    ControllerChange,
    ControllerEvent,
    Expire,
    IsrChangeNotification,
    LogDirEventNotification,
    PartitionModifications,
    PartitionReassignmentIsrChange,
    ReplicaLeaderElection,
    SessionEstablished,
    SessionReconnected,
    TopicChange,
    TopicDeletion,
    TopicNodesDeleted,
    UnreportedStates,
    ZkPartitionReassignment,
)
from regent.model.partition import TopicPartition
from regent.zk_data import paths
from regent.zk_data.operations import SessionState, WatchedEvent, WatchedEventType

_CHILD_EVENTS: dict[str, ControllerEvent] = {
    paths.BROKER_IDS: BrokerChange(),
    paths.BROKER_TOPICS: TopicChange(),
    paths.DELETE_TOPICS: TopicDeletion(),
    paths.ISR_CHANGE_NOTIFICATION: IsrChangeNotification(),
    paths.LOG_DIR_EVENT_NOTIFICATION: LogDirEventNotification(),
    paths.CONFIG_CHANGES: ConfigChange(),
}

_TOPIC_EVENTS: Final = {
    WatchedEventType.NODE_DATA_CHANGED: PartitionModifications,
    WatchedEventType.NODE_DELETED: TopicNodesDeleted,
}

WATCHED_PARENTS: Final = tuple(_CHILD_EVENTS)
"""Nodes whose children a controller has to know."""

SESSION_EVENTS: Final[Mapping[SessionState, ControllerEvent]] = {
    SessionState.CONNECTED: SessionEstablished(),
    SessionState.RECONNECTED: SessionReconnected(),
    SessionState.EXPIRED: Expire(),
}

NEEDED: Final[tuple[ControllerEvent, ...]] = (
    ControllerChange(),
    ClusterIdChange(),
    *_CHILD_EVENTS.values(),
    ZkPartitionReassignment(),
    ReplicaLeaderElection(),
)
"""What the watches of those paths stand for that a controller needs, whatever the cluster has."""


def event_of(watched: WatchedEvent) -> ControllerEvent | None:
    """The event that a fired watch stands for; None if another watch reports what follows.

    The deletion of a broker's node is such a case: its parent's children have changed. So they have
    when a topic's node was deleted, but not if it was created again before anybody read the list; a
    broker that registers again has another epoch.
    """
    if watched.path == paths.CONTROLLER:
        return ControllerChange()
    if watched.path == paths.CLUSTER_ID:
        return ClusterIdChange()
    if watched.path == paths.PREFERRED_REPLICA_ELECTION:
        return ReplicaLeaderElection()
    if watched.path == paths.REASSIGN_PARTITIONS:
        return ZkPartitionReassignment()
    if watched.type is WatchedEventType.NODE_CHILDREN_CHANGED:
        return _CHILD_EVENTS.get(watched.path)
    topic = paths.topic_of(watched.path)
    if topic is not None and watched.path == paths.topic(topic):
        return _TOPIC_EVENTS[watched.type]((topic,)) if watched.type in _TOPIC_EVENTS else None
    if watched.type is not WatchedEventType.NODE_DATA_CHANGED:
        return None
    broker_id = paths.broker_of(watched.path)
    if broker_id is not None:
        return BrokerModifications((broker_id,))
    tp = paths.partition_of_state(watched.path)
    if tp is not None:
        return PartitionReassignmentIsrChange((tp,))
    return None


def events_of_unreported(changed: Iterable[str]) -> list[ControllerEvent]:
    """The events for nodes that are others than known, though no watch has reported that.

    Args:
        changed: Paths of the cluster's id, registrations, topics and states of partitions.
    """
    events: dict[ControllerEvent, None] = {}
    states: list[TopicPartition] = []
    for path in changed:
        tp = paths.partition_of_state(path)
        if tp is not None:
            states.append(tp)
            continue
        parent = path.rpartition("/")[0]
        if parent in _CHILD_EVENTS:  # it may have come or gone, too
            events[_CHILD_EVENTS[parent]] = None
        event = event_of(WatchedEvent(WatchedEventType.NODE_DATA_CHANGED, path))
        if event is not None:
            events[event] = None
    return [*events, *([UnreportedStates(tuple(states))] if states else [])]

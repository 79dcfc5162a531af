"""From a fired watch, or a change of the session, to the event that looks at what happened."""

from __future__ import annotations

from collections.abc import Mapping
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
    ZkPartitionReassignment,
)
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

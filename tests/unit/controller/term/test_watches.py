"""Which event a fired watch stands for."""

from __future__ import annotations

import pytest

from regent.controller import events as e
from regent.controller.term.watches import event_of, events_of_unreported
from regent.model.partition import TopicPartition
from regent.zk_data.operations import WatchedEvent, WatchedEventType

CREATED = WatchedEventType.NODE_CREATED
DELETED = WatchedEventType.NODE_DELETED
CHANGED = WatchedEventType.NODE_DATA_CHANGED
CHILDREN = WatchedEventType.NODE_CHILDREN_CHANGED


@pytest.mark.parametrize(
    ("path", "event"),
    [
        ("/brokers/ids", e.BrokerChange()),
        ("/brokers/topics", e.TopicChange()),
        ("/admin/delete_topics", e.TopicDeletion()),
        ("/isr_change_notification", e.IsrChangeNotification()),
        ("/log_dir_event_notification", e.LogDirEventNotification()),
        ("/config/changes", e.ConfigChange()),
    ],
)
def test_a_changed_list_of_children(path: str, event: e.ControllerEvent) -> None:
    assert event_of(WatchedEvent(CHILDREN, path)) == event
    assert event_of(WatchedEvent(DELETED, path)) is None


@pytest.mark.parametrize("kind", [CREATED, DELETED, CHANGED])
@pytest.mark.parametrize(
    ("path", "event"),
    [
        ("/admin/reassign_partitions", e.ZkPartitionReassignment()),
        ("/admin/preferred_replica_election", e.ReplicaLeaderElection()),
        ("/controller", e.ControllerChange()),
        ("/cluster/id", e.ClusterIdChange()),
    ],
)
def test_whatever_happens_to_a_single_node(
    kind: WatchedEventType, path: str, event: e.ControllerEvent
) -> None:
    """Its removal, too: the watch has to be set again."""
    assert event_of(WatchedEvent(kind, path)) == event


@pytest.mark.parametrize(
    ("path", "event"),
    [
        ("/brokers/ids/7", e.BrokerModifications((7,))),
        ("/brokers/topics/t", e.PartitionModifications(("t",))),
        ("/brokers/topics/a.b-c_d", e.PartitionModifications(("a.b-c_d",))),
        (
            "/brokers/topics/t/partitions/3/state",
            e.PartitionReassignmentIsrChange((TopicPartition("t", 3),)),
        ),
    ],
)
def test_changed_data(path: str, event: e.ControllerEvent) -> None:
    assert event_of(WatchedEvent(CHANGED, path)) == event


@pytest.mark.parametrize("path", ["/brokers/ids/3", "/brokers/topics/t/partitions/3/state"])
def test_deletions_that_the_list_of_siblings_shows(path: str) -> None:
    assert event_of(WatchedEvent(DELETED, path)) is None


def test_a_deleted_topic_may_have_a_successor_that_no_list_shows() -> None:
    deleted = WatchedEvent(DELETED, "/brokers/topics/t")
    assert event_of(deleted) == e.TopicNodesDeleted(("t",))
    assert event_of(WatchedEvent(DELETED, "/brokers/topics/t/partitions")) is None


@pytest.mark.parametrize(
    "path",
    [
        "/brokers/ids/seven",
        "/brokers/topics",
        "/brokers/topics/t/partitions",
        "/brokers/topics/t/partitions/0",
        "/brokers/topics/t/partitions/zero/state",
        "/elsewhere",
    ],
)
def test_other_nodes_stand_for_nothing(path: str) -> None:
    assert event_of(WatchedEvent(CHANGED, path)) is None


def test_what_no_watch_has_reported_is_looked_at_as_if_one_had() -> None:
    t0, u1 = TopicPartition("t", 0), TopicPartition("u", 1)
    changed = [
        "/cluster/id",
        "/brokers/ids/7",
        "/brokers/topics/t",
        "/brokers/topics/u",
        "/brokers/topics/t/partitions/0/state",
        "/brokers/topics/u/partitions/1/state",
    ]
    assert events_of_unreported(changed) == [
        e.ClusterIdChange(),
        e.BrokerChange(),
        e.BrokerModifications((7,)),
        e.TopicChange(),
        e.PartitionModifications(("t",)),
        e.PartitionModifications(("u",)),
        e.UnreportedStates((t0, u1)),
    ]

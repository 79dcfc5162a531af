"""KafkaTopics with a mistake: refused with field and reason, nothing written, and then healed."""

from __future__ import annotations

from typing import Any

import pytest

from sandbox.errors import CommandError
from tests.support.cluster import Cluster
from tests.support.resources import Resources, topic
from tests.support.znodes import Znode, difference

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("process")]


@pytest.fixture(scope="module")
def tree(cluster: Cluster, resources: Resources) -> dict[str, Znode]:
    """All znodes before anything wrong is asked for. A topic serves as proof of life."""
    resources.apply(topic("taken"))
    resources.wait_ready("taken")
    cluster.wait_for_consistency()
    return cluster.znodes.dump()


@pytest.mark.parametrize(
    ("manifest", "said"),
    [
        (topic("no-partitions", partitions=0), "spec.partitions"),
        (topic("no-replicas", replicas=0), "spec.replicas"),
        (topic("illegal-name", topicName="white space"), "spec.topicName"),
        (topic("reserved-name", topicName=".."), "'.' and '..' are reserved"),
        (
            topic("two-ways", replicas=3, replicaAssignment=[[1, 2], [2, 3], [3, 1]]),
            "set replicas or replicaAssignment, not both",
        ),
        (topic("twice-the-same", replicaAssignment=[[1, 1]], partitions=1), "replicaAssignment"),
        (topic("unknown-field", retention=1), 'unknown field "spec.retention"'),
        (topic("no-scalar", config={"retention.ms": {"days": 1}}), "spec.config"),
        (topic("too-many", partitions=10_001), "less than or equal to 10000"),
    ],
    ids=lambda value: value["metadata"]["name"] if isinstance(value, dict) else "",
)
def test_what_the_resource_itself_tells_is_refused_by_the_api_server(
    cluster: Cluster,
    resources: Resources,
    tree: dict[str, Znode],
    manifest: dict[str, Any],
    said: str,
) -> None:
    with pytest.raises(CommandError) as refused:
        resources.create(manifest)
    assert said in str(refused.value)
    assert not difference(tree, cluster.znodes.dump())


def test_what_the_cluster_tells_is_refused_by_conditions_and_heals_when_it_is_corrected(
    cluster: Cluster, resources: Resources, tree: dict[str, Znode]
) -> None:
    resources.apply(
        topic("crowded", replicas=4),
        topic("unknown-config", config={"retention.minutes": 5}),
        topic("bad-value", config={"retention.ms": "soon"}),
        topic("unmeetable", config={"min.insync.replicas": 4}),
        topic("not-a-broker", replicaAssignment=[[1, 9]], partitions=1),
        topic("also-taken", topicName="taken"),
    )
    for name, reason, field, word in (
        ("crowded", "NotEnoughBrokers", "spec.replicas", "there are 3"),
        ("unknown-config", "InvalidConfig", "spec.config[retention.minutes]", "retention.minutes"),
        ("bad-value", "InvalidConfig", "spec.config[retention.ms]", "soon"),
        ("unmeetable", "InvalidConfig", "spec.config[min.insync.replicas]", "only 3 replicas"),
        ("not-a-broker", "BrokersUnavailable", "spec.replicaAssignment", "brokers [9]"),
        ("also-taken", "ResourceConflict", "", "taken"),
    ):
        ready = resources.wait_for_condition(name, "Ready", "False", reason)
        print(f"{name}: {ready['reason']}: {ready['message']}")
        assert field in ready["message"], name
        assert word in ready["message"], name
    assert not difference(tree, cluster.znodes.dump())

    resources.patch("crowded", replicas=3)
    resources.patch("unknown-config", config={"retention.minutes": None, "retention.ms": 300_000})
    resources.patch("bad-value", config={"retention.ms": 300_000})
    resources.patch("unmeetable", config={"min.insync.replicas": 2})
    resources.patch("not-a-broker", replicaAssignment=[[1, 3]])
    resources.patch("taken", deletionPolicy="Retain")
    resources.delete("taken")
    corrected = [
        "crowded",
        "unknown-config",
        "bad-value",
        "unmeetable",
        "not-a-broker",
        "also-taken",
    ]
    resources.wait_ready(*corrected)
    assert cluster.znodes.config("unknown-config") == {"retention.ms": "300000"}
    assert cluster.znodes.assignment("not-a-broker") == {0: [1, 3]}
    assert cluster.znodes.assignment("also-taken") is None
    assert cluster.znodes.states("taken")


def test_partitions_cannot_be_decreased(cluster: Cluster, resources: Resources) -> None:
    resources.apply(topic("grown", partitions=2))
    resources.wait_ready("grown")
    with pytest.raises(CommandError, match="partitions cannot be decreased below what the topic"):
        resources.patch("grown", partitions=1)
    assert sorted(cluster.znodes.assignment("grown") or {}) == [0, 1]

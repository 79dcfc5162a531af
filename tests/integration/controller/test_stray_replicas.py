"""A topic is deleted while a broker is down: the broker gets rid of its replicas at its return."""

from __future__ import annotations

import json

import pytest

from regent.zk_data.stray_replicas import strays_on
from tests.support.cluster import Cluster
from tests.support.resources import Resources, topic

pytestmark = [
    pytest.mark.integration,
    pytest.mark.slow,
    pytest.mark.usefixtures("process"),
]

AWAY = 3
RECORDS = "".join(f"record {number}\n" for number in range(1000))


def log_sizes(cluster: Cluster, name: str) -> dict[str, int]:
    """Bytes of each replica that a broker has of a topic, but for those being deleted."""
    return {
        path.name: sum(segment.stat().st_size for segment in path.glob("*.log"))
        for path in cluster.broker(AWAY).state_path.glob(f"data*/{name}-*")
        if not path.name.endswith("-delete")
    }


def test_a_broker_that_is_away_holds_no_deletion_up_and_keeps_nothing(
    cluster: Cluster, resources: Resources
) -> None:
    for name in ("gone", "again"):
        resources.apply(topic(name, partitions=1, replicaAssignment=[[1, AWAY]]))
        resources.wait_ready(name)
        cluster.tools.run(
            "kafka-console-producer",
            f"--bootstrap-server={cluster.broker(1).bootstrap_servers}",
            f"--topic={name}",
            "--producer-property=acks=all",
            stdin=RECORDS,
        )
        assert log_sizes(cluster, name)[f"{name}-0"] > len(RECORDS)

    cluster.kill_broker(AWAY)
    resources.delete("gone", "again")  # returns when the finalizers are removed
    assert cluster.znodes.assignment("gone") is None
    assert sorted(cluster.znodes.children(strays_on(AWAY))) == ["again", "gone"]
    # Somebody creates one of them again, on the broker that has the former records.
    cluster.znodes.client.create(
        "/brokers/topics/again", json.dumps({"version": 1, "partitions": {"0": [1, AWAY]}}).encode()
    )
    cluster.wait_for_leader("again", 1)

    cluster.broker(AWAY).start()
    cluster.wait(
        lambda: cluster.znodes.children(strays_on(AWAY)),
        "the notes about stray replicas to go",
        until=lambda notes: not notes,
    )
    cluster.wait_in_sync("again")
    assert log_sizes(cluster, "gone") == {}
    assert log_sizes(cluster, "again") == {"again-0": 0}
    cluster.wait_for_consistency()


def test_a_broker_whose_process_outlived_its_session_forgets_what_was_deleted(
    cluster: Cluster, resources: Resources
) -> None:
    names = {"elsewhere": [[1]], "hosted": [[1, AWAY]], "shrunk": [[1, 2], [2, AWAY]]}
    for name, assignment in names.items():
        resources.apply(topic(name, partitions=len(assignment), replicaAssignment=assignment))
        resources.wait_ready(name)
    cluster.wait_for_consistency()

    cluster.broker(AWAY).pause()
    cluster.broker(AWAY).end_session()
    resources.delete(*names)
    cluster.znodes.create_topic("shrunk", {0: [1]})
    cluster.wait_for_leader("shrunk", 1)
    cluster.broker(AWAY).resume()

    cluster.wait(
        lambda: AWAY in cluster.znodes.broker_ids(), f"broker {AWAY} to be registered again"
    )
    cluster.wait_for_consistency()

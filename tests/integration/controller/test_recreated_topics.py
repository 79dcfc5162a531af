"""A topic without an id is deleted and created again by tools while Regent is away."""

from __future__ import annotations

import pytest

from tests.support.cluster import Cluster, regent
from tests.support.resources import Resources, topic

pytestmark = pytest.mark.integration

NAME = "recreated-meanwhile"


def test_a_topic_that_lost_its_data_while_regent_was_away_is_reported(
    cluster: Cluster, resources: Resources
) -> None:
    api, namespace = resources.api.kubeconfig, resources.namespace
    with regent(cluster, kubeconfig=api, namespace=namespace) as process:
        process.wait_until_active()
        resources.apply(topic(NAME, partitions=1))
        resources.wait_ready(NAME)
        before = resources.get(NAME)["status"]
        assert "topicId" not in before
    cluster.wait_for_a_broker_as_controller()
    cluster.tools.topics("--delete", f"--topic={NAME}")
    cluster.wait(lambda: NAME not in cluster.znodes.topics(), "the topic to be deleted")
    cluster.tools.create_topic(NAME, partitions=1, replication_factor=3)
    cluster.wait_for_consistency()

    with regent(cluster, kubeconfig=api, namespace=namespace) as process:
        process.wait_until_active()
        resources.wait_for_status(NAME, "the loss to be recorded", ownership="Adopted")
        after = resources.get(NAME)["status"]
        assert after["topicCzxid"] != before["topicCzxid"]
        assert after["lastForeignDeletion"]["recreatedAs"] == f"cZxid {after['topicCzxid']}"
        resources.wait_for_events(NAME, "TopicRecreatedExternally")

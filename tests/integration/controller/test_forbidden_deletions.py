"""Brokers with delete.topic.enable=false, and a Regent that was not told of it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.cluster import Cluster, cluster_of, regent
from tests.support.reassigning import hosts

pytestmark = [pytest.mark.integration, pytest.mark.slow]

REMOVED = "Topic deletion is disabled, markers removed"
WAITS = "Deletion of topics waits"


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """Sessions outlive a pause of their broker."""
    with cluster_of(
        "3.9.1", brokers=2, session_timeout_ms=120_000, delete_topic_enable=False
    ) as started:
        yield started


@pytest.mark.parametrize("answers", [True, False], ids=["one broker answers", "no broker answers"])
def test_a_topic_that_was_marked_while_nobody_led_lives(cluster: Cluster, answers: bool) -> None:
    topic, znodes = f"precious-{answers}", cluster.znodes
    marker = f"/admin/delete_topics/{topic}"
    znodes.create_topic(topic, {0: [1, 2], 1: [2, 1]})
    cluster.wait_in_sync(topic)
    cluster.tools.produce(topic, ["kept"])
    leading = cluster.broker(cluster.wait_for_a_broker_as_controller())
    frozen = [each for each in cluster.running if each is leading or not answers]
    for each in frozen:
        each.pause()
    try:
        znodes.client.create(marker)
        with regent(cluster) as process:
            process.wait_until_active()
            # It waits also until the first answer has come.
            said = cluster.wait(
                lambda: {entry["message"] for entry in process.log_entries()},
                "Regent to look at the marker",
                until=lambda messages: (REMOVED if answers else WAITS) in messages,
            )
            assert (REMOVED in said) is answers
            for each in frozen:
                each.resume()
            cluster.wait(lambda: znodes.get(marker) is None, "the marker to be removed")
            cluster.wait_in_sync(topic)
            cluster.wait_for_consistency()
            assert cluster.tools.consume(topic, 1) == ["kept"]
            assert [hosts(cluster, topic, partition) for partition in (0, 1)] == [[1, 2], [1, 2]]
    finally:
        for each in frozen:
            each.resume()

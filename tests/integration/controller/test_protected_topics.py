"""Topics that are in use, and resources that are deleted and protect them, on real brokers."""

from __future__ import annotations

from pathlib import Path

import pytest

from sandbox import wait_until
from tests.support.cluster import Cluster
from tests.support.resources import Resources, condition, topic

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("process")]

DAY_S = 86_400


def protected(name: str, *, idle_s: int = DAY_S) -> dict[str, object]:
    return topic(name, partitions=2, deletionPolicy="Protect", deleteWhenIdleSeconds=idle_s)


def protection(resources: Resources, name: str, *texts: str, changed: int) -> None:
    """Wait until what keeps the topic is this. Another time is another question: that is asked at
    once, and not in a minute.

    Args:
        changed: Seconds by which the time is another one than before.
    """
    resources.patch(name, deleteWhenIdleSeconds=DAY_S + changed)
    resources.wait_for_condition(name, "Stalled", "True", "DeletionProtected")
    wait_until(
        lambda: condition(resources.get(name), "Stalled")["message"],
        until=lambda message: all(text in message for text in texts),
        describe=f"what keeps {name} to be {texts}",
    )


def test_records_and_consumer_groups_keep_a_topic_until_they_are_gone(
    cluster: Cluster, resources: Resources, tmp_path: Path
) -> None:
    tools = cluster.tools
    server = f"--bootstrap-server={tools.bootstrap_servers}"
    resources.apply(protected("guarded"), protected("read"))
    resources.wait_ready("guarded", "read")
    tools.produce("guarded", ["one", "two", "three"])
    group = ("--group=readers", "--topic=read")
    tools.run(
        "kafka-consumer-groups", server, *group, "--reset-offsets", "--to-earliest", "--execute"
    )

    resources.delete("guarded", "read", wait=False)
    protection(resources, "guarded", "records of the last 86401 seconds are in", changed=1)
    protection(resources, "read", "consumer groups use it: readers (committed offsets)", changed=1)
    assert cluster.znodes.assignment("guarded") is not None
    assert cluster.znodes.assignment("read") is not None

    cluster.broker(2).pause()
    try:
        protection(resources, "read", "it is not known whether it is used: broker 2", changed=2)
    finally:
        cluster.broker(2).resume()

    # one group or the other is there all the time: the topic may be looked at at any moment
    with tools.running(
        "kafka-console-consumer",
        server,
        "--topic=read",
        "--group=listeners",
        "--consumer-property=enable.auto.commit=false",
        log_path=tmp_path / "listeners.log",
    ):
        cluster.wait(
            lambda: (
                tools.run(
                    "kafka-consumer-groups", server, "--group=listeners", "--describe", check=False
                ).stdout
            ),
            "the consumer to be a member",
            until=lambda text: "console-consumer" in text,
        )
        tools.run("kafka-consumer-groups", server, "--group=readers", "--delete")
        protection(resources, "read", "consumer groups use it: listeners (subscribed)", changed=3)
    resources.patch("read", deleteWhenIdleSeconds=DAY_S + 4)
    resources.wait_gone("read")
    assert cluster.znodes.assignment("read") is None

    assert cluster.znodes.assignment("guarded") is not None
    resources.patch("guarded", deletionPolicy="Delete", deleteWhenIdleSeconds=None)
    resources.wait_gone("guarded")
    assert cluster.znodes.assignment("guarded") is None

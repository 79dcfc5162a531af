"""Topics are deleted while a broker with replicas of them is down."""

from __future__ import annotations

from regent.zk_data.stray_replicas import strays_on
from tests.matrix.flow import Flow, Stage
from tests.support.reassigning import create_topic, hosts

_PARTITIONS = 4


def _delete(stage: Stage) -> None:
    """The broker holds nothing up. One of the topics is created again before it returns."""
    cluster, znodes = stage.cluster, stage.cluster.znodes
    gone, again = stage.name("gone"), stage.name("again")
    assignment = {partition: [1, 3] for partition in range(_PARTITIONS)}
    for topic in (gone, again):
        create_topic(cluster, topic, assignment)
        cluster.tools.produce(topic, ["a record"])
    with stage.regent():
        cluster.kill_broker(3)
        for topic in (gone, again):
            znodes.client.create(f"/admin/delete_topics/{topic}")
        cluster.wait(
            lambda: [t for t in (gone, again) if znodes.assignment(t) is not None],
            "the topics to be gone",
            until=lambda left: not left,
        )
        assert znodes.children(strays_on(3)) == sorted((gone, again))
        stage.producer.wait_for_progress()
        znodes.client.create(f"/brokers/topics/{again}", b'{"version":1,"partitions":{"0":[1,3]}}')
        cluster.wait_for_leader(again, 1)
        cluster.tools.produce(again, ["another record"])
        cluster.broker(3).start()
        cluster.wait(
            lambda: znodes.children(strays_on(3)), "the rest to be deleted", until=lambda n: not n
        )
        cluster.wait_in_sync(again)
        for partition in range(_PARTITIONS):
            assert hosts(cluster, gone, partition) == []
            assert hosts(cluster, again, partition) == ([1, 3] if partition == 0 else [])
        assert cluster.tools.consume(again, 1) == ["another record"]


DELETION = Flow(name="deletion", run=_delete)

"""Brokers and disks fail under what is written to them."""

from __future__ import annotations

from tests.matrix.flow import Flow, Stage
from tests.support.log_directory import LogDirectory

_PAUSE_OUTLIVED_MS = 40_000
"""A session that outlives a pause in which a broker is restarted."""


def _crash(stage: Stage) -> None:
    """The leader is killed, and then the next one; each returns."""
    cluster, znodes = stage.cluster, stage.cluster.znodes
    with stage.regent():
        for _ in range(2):
            before = znodes.state(stage.topic)
            cluster.kill_broker(before["leader"])
            after = cluster.wait(
                lambda: znodes.state(stage.topic),
                "another broker to lead",
                until=lambda state, gone=before["leader"]: state["leader"] not in (gone, -1),
            )
            assert after["leader"] in before["isr"]
            stage.producer.wait_for_progress()
            cluster.broker(before["leader"]).start()
            cluster.wait_in_sync(stage.topic)


def _bounce(stage: Stage) -> None:
    """The leader is back before its absence was observed."""
    cluster, znodes = stage.cluster, stage.cluster.znodes
    with stage.regent(session_timeout_ms=_PAUSE_OUTLIVED_MS) as process:
        before = znodes.state(stage.topic)
        process.pause()
        cluster.kill_broker(before["leader"])
        cluster.broker(before["leader"]).start()
        process.resume()
        cluster.wait(
            lambda: znodes.state(stage.topic),
            "another leader",
            until=lambda state: state["leader"] not in (before["leader"], -1),
        )
        cluster.wait_in_sync(stage.topic)
        stage.producer.wait_for_progress()


def _fail_log_directory(stage: Stage) -> None:
    """Leaders leave a directory that cannot be written to; replicas return with it."""
    cluster, znodes = stage.cluster, stage.cluster.znodes
    directory = LogDirectory(cluster, 1)
    with stage.regent():
        before = znodes.states(stage.topic)
        failed = [p for _, p in before if directory.holds(stage.topic, p)]
        assert failed, "no replica in the directory"
        assert len(failed) < len(before), "all replicas in one directory"
        directory.fail()
        cluster.wait(
            lambda: {p: znodes.state(stage.topic, p) for p in failed},
            "the failed replicas to leave",
            until=lambda states: all(
                state["leader"] in (2, 3) and 1 not in state["isr"] for state in states.values()
            ),
        )
        stage.producer.wait_for_progress()
        for (topic, partition), state in before.items():
            if partition not in failed:
                assert znodes.state(topic, partition) == state
        cluster.kill_broker(1)
        directory.mend()
        cluster.broker(1).start()
        cluster.wait_in_sync(stage.topic)
        stage.producer.wait_for_progress()
        assert all(directory.holds(stage.topic, partition) for partition in failed)


CRASH = Flow(name="crash", run=_crash)
BOUNCE = Flow(name="bounce", run=_bounce)
LOG_DIRECTORY = Flow(
    name="log-directory",
    run=_fail_log_directory,
    assignment={partition: [1, 2, 3] for partition in range(4)},
)

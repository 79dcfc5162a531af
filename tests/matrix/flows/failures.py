"""Brokers fail under what is written to them."""

from __future__ import annotations

from tests.matrix.flow import Flow, Stage

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


CRASH = Flow(name="crash", run=_crash)
BOUNCE = Flow(name="bounce", run=_bounce)

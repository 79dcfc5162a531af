"""Take-overs and hand-backs at moments that nobody has chosen."""

from __future__ import annotations

import time

from tests.matrix.flow import SESSION_TIMEOUT_MS, Flow, Stage
from tests.matrix.jobs import BrokerFailure, Deletion, Job, Reassignment
from tests.support.cluster import regent

_ROUNDS = 5
_LONGEST_S = 3.0
"""About as long as a Regent needs to be the controller and to finish what it is given."""


def _hand_over(stage: Stage) -> None:
    """A Regent is started, and stopped or killed, while there is work for a controller."""
    jobs: list[Job] = [Reassignment(stage), Deletion(stage), BrokerFailure(stage)]
    for _ in range(_ROUNDS):
        job = stage.chance.choice(jobs)
        stage.cluster.wait_for_a_broker_as_controller()
        began_before = stage.chance.random() < 0.5
        if began_before:
            job.begin()
        with regent(stage.cluster, zookeeper_session_timeout_ms=SESSION_TIMEOUT_MS) as process:
            if not began_before:
                job.begin()
            time.sleep(stage.chance.uniform(0.0, _LONGEST_S))
            if stage.chance.random() < 0.5:
                process.kill()
            else:
                process.stop()
        stage.cluster.wait_for_a_broker_as_controller()
        job.finish()
        stage.cluster.wait_in_sync()
        stage.producer.wait_for_progress()


HAND_OVERS = Flow(name="hand-overs", run=_hand_over)

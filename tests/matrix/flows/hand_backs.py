"""Regent is stopped in the middle of something, and a broker's controller finishes it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from sandbox.errors import WaitTimeoutError
from tests.matrix.flow import Flow, Stage
from tests.matrix.jobs import BrokerFailure, Deletion, Job, Reassignment, Start
from tests.support.cluster import regent


def _hand_back(make_job: Callable[[Stage], Job], stage: Stage) -> None:
    """In the middle of each phase."""
    job = make_job(stage)
    for phase in job.phases:
        with stage.regent() as process:
            job.begin()
            job.wait_for(phase)
            process.process.terminate()
        assert process.process.exit_code == 0
        _finish(stage, job)
        with stage.regent():
            job.tidy()


def _hand_back_in_failover(stage: Stage) -> None:
    """Regent has just been elected, and finds topics that nobody has created partitions for."""
    job = Start(stage)
    for phase in job.phases:
        holder = stage.broker_with_the_controller()
        holder.pause()
        job.begin()
        with regent(stage.cluster) as process:
            job.wait_for(phase)
            process.process.terminate()
        assert process.process.exit_code == 0
        stage.let_go_on(holder)
        _finish(stage, job)


def _finish(stage: Stage, job: Job) -> None:
    """A broker's controller finishes it; or Regent, where that one may be stuck for good."""
    stage.cluster.wait_for_a_broker_as_controller()
    try:
        job.finish()
    except WaitTimeoutError:
        if not stage.leaders_may_forget_changes:
            raise
        print(f"{stage.topic}: the broker's controller is stuck, Regent takes over", flush=True)
        with stage.regent():
            job.finish()
    stage.cluster.wait_in_sync()
    stage.producer.wait_for_progress()
    stage.cluster.wait_for_consistency()


HAND_BACKS = (
    *(
        Flow(name=f"hand-back-in-{name}", run=partial(_hand_back, make_job))
        for name, make_job in (
            ("reassignment", Reassignment),
            ("deletion", Deletion),
            ("broker-failure", BrokerFailure),
        )
    ),
    Flow(name="hand-back-in-failover", run=_hand_back_in_failover),
)

"""Regent takes over while a broker's controller is in the middle of something, and finishes it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from sandbox import KafkaBroker
from tests.matrix.flow import Flow, Stage
from tests.matrix.jobs import BrokerFailure, ControllerFailure, Deletion, Job, Reassignment
from tests.matrix.standby import standby
from tests.support.cluster import controller_id_of


def _take_over(make_job: Callable[[Stage], Job], stage: Stage) -> None:
    """In the middle of each phase: the broker stops there, and goes on when it is too late.

    Replicas that its controller has removed from ZooKeeper and was about to have deleted stay on
    their brokers: nothing says that they are there.
    """
    cluster, job = stage.cluster, make_job(stage)
    for phase in job.phases:
        cluster.wait_for_a_broker_as_controller()
        with standby(cluster) as regent:
            job.begin()
            job.wait_for(phase)
            holder = stage.broker_with_the_controller()
            holder.pause()
            regent.take_over()
            stage.let_go_on(holder)
            job.finish()
            cluster.wait_in_sync()
            stage.producer.wait_for_progress()
            cluster.wait_for_consistency()
            assert cluster.znodes.controller() == controller_id_of(regent.process)
            _restart(stage, holder)


def _restart(stage: Stage, deposed: KafkaBroker) -> None:
    """What Kafka's controller was about to send when it was deposed makes its state machines fail
    once its broker is elected again ("batch is not empty"): only a restart forgets that."""
    deposed.kill()
    deposed.start()
    stage.cluster.wait_in_sync()


TAKE_OVERS = tuple(
    Flow(name=f"take-over-in-{name}", run=partial(_take_over, make_job))
    for name, make_job in (
        ("reassignment", Reassignment),
        ("deletion", Deletion),
        ("broker-failure", BrokerFailure),
        ("failover", ControllerFailure),
    )
)

"""What Flux and kubectl make of each phase, by the rules of kstatus, what the page says of it, and
what is shown while the cluster cannot be seen."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest

from regent.controller.view import ClusterView
from regent.model.partition import TopicPartition
from regent.reconcile.drains.transitions import is_significant, transition_events
from regent.reconcile.drains.unreadable import UnreadableRequest, plan_unreadable
from regent.reconcile.request import Absence
from regent.resources.broker_drain import UnreadableDrain, parse_broker_drain
from regent.resources.broker_drain_status import BrokerDrainStatus, DrainPhase
from tests.support.kstatus import kstatus
from tests.support.present import present
from tests.unit.reconcile.drains.draining import Cluster, Drain
from tests.unit.reconcile.requests import partition, state, status_of

PAGE = Path(__file__).parents[4] / "docs" / "broker-drain.md"


def pending() -> Drain:
    drain = Drain(Cluster({"t": [(1, 2, 3)]}, brokers=3), 1)
    drain.settle()
    return drain


def refused() -> Drain:
    drain = Drain(Cluster({"t": [(1, 2)]}, brokers=3, racks=("a", "b", "b")), 1)
    drain.settle()
    return drain


def draining() -> Drain:
    drain = Drain(Cluster({"t": [(1, 2), (1, 3)]}), 1, concurrency={"total": 1})
    drain.settle()
    return drain


def verifying() -> Drain:
    drain = Drain(Cluster({"t": [(1, 2)]}), 1)
    drain.settle()
    drain.cluster.arrive(TopicPartition("t", 0))
    (replicas,) = drain.cluster.replicas("t")
    drain.cluster.put("t", partition(0, replicas, replicas[:1]))
    drain.settle()
    return drain


def drained() -> Drain:
    drain = draining()
    drain.finish()
    return drain


def then(drain: Drain, desired: str, *, finish: bool) -> Drain:
    drain.change(desiredState=desired)
    drain.finish() if finish else drain.settle()
    return drain


CASES: dict[DrainPhase, tuple[Callable[[], Drain], str]] = {
    DrainPhase.PENDING: (pending, "InProgress"),
    DrainPhase.REFUSED: (refused, "Failed"),
    DrainPhase.DRAINING: (draining, "InProgress"),
    DrainPhase.VERIFYING: (verifying, "InProgress"),
    DrainPhase.DRAINED: (drained, "Current"),
    DrainPhase.PAUSING: (lambda: then(draining(), "Paused", finish=False), "InProgress"),
    DrainPhase.PAUSED: (lambda: then(draining(), "Paused", finish=True), "Current"),
    DrainPhase.UNDOING: (lambda: then(drained(), "Undone", finish=False), "InProgress"),
    DrainPhase.UNDONE: (lambda: then(drained(), "Undone", finish=True), "Current"),
}


@pytest.mark.parametrize("phase", DrainPhase)
def test_every_phase_is_what_kstatus_takes_it_for(phase: DrainPhase) -> None:
    make, expected = CASES[phase]
    drain = make()
    assert drain.is_in(phase)
    for later, verdict in ((0, expected), (1, "InProgress")):
        metadata = {"generation": drain.generation + later}
        assert kstatus({"metadata": metadata, "status": drain.status.to_api()}) == verdict


def test_the_page_says_what_the_conditions_of_each_phase_are() -> None:
    rows = re.findall(
        r"^\| `(\w+)` \| (True|False) \| (True|False) \| (True|False) \| (True|False) \|",
        PAGE.read_text(),
        flags=re.MULTILINE,
    )
    types = ("Ready", "Reconciling", "Stalled", "Drained")
    actual = {
        phase.value: [make().truth()[type_].partition("/")[0] for type_ in types]
        for phase, (make, _) in CASES.items()
    }
    assert {phase: values for phase, *values in rows} == actual


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"is_complete": False}, "ClusterLoading"),
        ({"cluster_id": None}, "ClusterLoading"),
        ({"cluster_id": "cluster-b"}, "OtherCluster"),
    ],
)
def test_nothing_is_done_and_nothing_is_claimed_without_a_view_of_the_cluster(
    changes: dict[str, object], reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    drain = drained()
    seen: ClusterView = msgspec.structs.replace(drain.cluster.view, **changes)
    monkeypatch.setattr(Cluster, "view", seen)
    drain.absence = Absence(for_s=120, unknown_after_s=120)
    plan = drain.plan()
    assert plan.commands == ()
    assert status_of(plan).plan == drain.status.plan, "it is needed to undo"
    assert state(plan)["Ready"] == f"False/{reason}"
    assert state(plan)["Drained"] == "Unknown/Unknown"


def test_after_a_while_without_a_controller_nothing_is_known(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    drain = drained()
    monkeypatch.setattr(Cluster, "view", ClusterView())
    drain.absence = Absence(for_s=20, unknown_after_s=120)
    waiting = drain.plan()
    assert (waiting.status, waiting.requeue_after_s) == (None, 100)
    drain.absence = Absence(for_s=120, unknown_after_s=120)
    assert state(drain.plan())["Drained"] == "Unknown/Unknown"


def test_a_plan_that_somebody_has_changed_is_not_executed() -> None:
    drain = draining()
    changed = present(drain.status.plan).model_copy(update={"hash": f"sha256:{'0' * 64}"})
    drain.status = drain.status.model_copy(update={"plan": changed})
    for desired in ("Drained", "Undone"):
        drain.change(desiredState=desired)
        plan = drain.plan()
        assert plan.commands == ()
        assert state(plan)["Stalled"].startswith("True")


def test_events_say_when_it_begins_ends_and_stalls() -> None:
    drain, events = Drain(Cluster({"t": [(1, 2)]}), 1), []
    before = drain.status
    while drain.round() or drain.cluster.moving():
        events += [each.reason for each in transition_events(before, drain.status)]
        before = drain.status
        for tp in tuple(drain.cluster.moving()):
            drain.cluster.arrive(tp)
    assert events == ["DrainStarted", "DrainCompleted"]
    stalled = refused()
    (warning,) = transition_events(BrokerDrainStatus(), stalled.status)
    assert (warning.reason, warning.is_warning) == ("RacksLost", True)


def test_how_far_the_moves_are_is_a_detail() -> None:
    drain = Drain(Cluster({"t": [(1, 2)] * 3}), 1, concurrency={"total": 1})
    drain.settle()
    before = drain.status
    drain.cluster.arrive(next(iter(drain.cluster.moving())))
    drain.settle()
    assert drain.status.summary == "1/3"
    assert not is_significant(before, drain.status)
    assert is_significant(drain.status, drained().status)


def test_a_spec_that_cannot_be_read_moves_nothing() -> None:
    resource = parse_broker_drain({"metadata": {"name": "drain"}, "spec": {"brokers": "all"}})
    assert isinstance(resource, UnreadableDrain)
    plan = plan_unreadable(UnreadableRequest(resource, datetime(2026, 5, 1, tzinfo=UTC)))
    assert plan.commands == ()
    assert state(plan)["Stalled"].startswith("True")
    assert state(plan)["Drained"] == "Unknown/Unknown"

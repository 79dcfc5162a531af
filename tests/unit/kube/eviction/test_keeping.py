"""When a BrokerDrain of an eviction is undone, and when it is removed."""

from __future__ import annotations

from datetime import timedelta

import pytest

from regent.kube.eviction.drain_records import KnownDrain
from regent.kube.eviction.keeping import Step, next_step
from tests.unit.kube.eviction.builders import NOW, POD, SETTINGS, drain, pod

LONG_AGO = timedelta(seconds=SETTINGS.abandoned_after_s)


def test_it_stays_while_the_pod_is_to_be_evicted() -> None:
    recent = drain(made_for=POD, asked=LONG_AGO - timedelta(seconds=1))
    assert next_step(recent, pod(), SETTINGS, now=NOW) is None


def test_it_is_undone_when_another_pod_of_that_name_is_ready() -> None:
    known = drain(made_for=POD, drained=True)
    assert next_step(known, pod(uid="uid-2"), SETTINGS, now=NOW) is Step.UNDO_RETURNED


def test_a_pod_that_is_not_back_yet_is_waited_for_however_long_it_takes() -> None:
    known = drain(made_for=POD, drained=True, asked=10 * LONG_AGO)
    for there in (None, pod(deleted=True), pod(uid="uid-2", ready=False)):
        assert next_step(known, there, SETTINGS, now=NOW) is None
    assert next_step(known, pod(uid="uid-2", deleted=True), SETTINGS, now=NOW) is None


def test_it_is_undone_when_nobody_asks_any_more() -> None:
    known = drain(made_for=POD, drained=True, asked=LONG_AGO)
    assert next_step(known, pod(), SETTINGS, now=NOW) is Step.UNDO_ABANDONED


def test_a_time_that_is_still_to_come_is_none_at_which_anybody_asked() -> None:
    """The clock was set back, or somebody has changed the annotation."""
    known = drain(made_for=POD, drained=True, asked=-LONG_AGO)
    assert next_step(known, pod(), SETTINGS, now=NOW) is Step.UNDO_ABANDONED


def test_it_is_removed_once_it_is_undone() -> None:
    undoing = drain(made_for=POD, desired="Undone", phase="Undoing", asked=LONG_AGO)
    assert next_step(undoing, pod(), SETTINGS, now=NOW) is None
    undone = drain(made_for=POD, desired="Undone", phase="Undone")
    assert next_step(undone, pod(), SETTINGS, now=NOW) is Step.REMOVE
    assert next_step(undone, None, SETTINGS, now=NOW) is Step.REMOVE
    stale = drain(made_for=POD, desired="Undone", phase="Undone", generation=2)
    assert next_step(stale, pod(), SETTINGS, now=NOW) is None


@pytest.mark.parametrize(
    "known",
    [
        drain(),
        drain(made_for=POD, desired="Paused", asked=LONG_AGO),
        drain(made_for=POD, deleted=True, asked=LONG_AGO),
        drain(made_for=POD, spec={"brokers": "all"}, asked=LONG_AGO),
    ],
    ids=["of-somebody-else", "paused-by-somebody", "being-deleted", "unreadable"],
)
def test_others_are_left_alone(known: KnownDrain) -> None:
    assert next_step(known, pod(), SETTINGS, now=NOW) is None
    assert next_step(known, pod(uid="uid-2"), SETTINGS, now=NOW) is None


@pytest.mark.parametrize(
    "changes",
    [
        {"kafka.regent.dev/evicted-pod": "broker-4"},
        {"kafka.regent.dev/evicted-pod": "kafka/../pods"},
        {"kafka.regent.dev/evicted-pod": "kafka/broker-4/log"},
        {"kafka.regent.dev/evicted-pod": "../kafka/broker-4"},
        {"kafka.regent.dev/evicted-pod": "kafka/broker-4?watch=true"},
        {"kafka.regent.dev/evicted-pod-uid": ""},
        {"kafka.regent.dev/eviction-asked-at": "yesterday"},
        {"kafka.regent.dev/eviction-asked-at": "2026-03-01T10:00:00"},
    ],
)
def test_a_record_that_somebody_has_spoilt_is_none(changes: dict[str, str]) -> None:
    metadata = {
        "name": "eviction-broker-4",
        "labels": {"kafka.regent.dev/made-for": "eviction"},
        "annotations": {
            "kafka.regent.dev/evicted-pod": "kafka/broker-4",
            "kafka.regent.dev/evicted-pod-uid": "uid-1",
            "kafka.regent.dev/eviction-asked-at": "2026-03-01T10:00:00+00:00",
        },
    }
    spec = {"brokers": [4]}
    assert KnownDrain.read({"metadata": metadata, "spec": spec}).record is not None
    metadata["annotations"] = {**metadata["annotations"], **changes}  # type: ignore[dict-item]
    assert KnownDrain.read({"metadata": metadata, "spec": spec}).record is None

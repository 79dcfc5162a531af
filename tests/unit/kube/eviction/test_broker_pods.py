"""Which broker a pod is, and whether it lives."""

from __future__ import annotations

from typing import Any

import pytest

from regent.kube.eviction.broker_pods import (
    UnknownBrokerError,
    broker_of,
    is_broker,
    is_out_of_use,
    is_ready,
)
from tests.unit.kube.eviction.builders import pod


def test_a_pod_with_all_labels_is_a_broker() -> None:
    one = pod(labels={"cluster": "east"})
    assert is_broker(one, {"app": "kafka", "cluster": "east"})
    assert not is_broker(one, {"app": "kafka", "cluster": "west"})
    assert not is_broker(one, {"app": "kafka", "rack": "a"})
    assert not is_broker({"metadata": {"name": "bare"}}, {"app": "kafka"})


@pytest.mark.parametrize("kind", ["StatefulSet", "StrimziPodSet"])
def test_the_number_of_a_pod_is_its_broker(kind: str) -> None:
    owners = ({"kind": kind, "name": "my-kafka", "controller": True},)
    assert broker_of(pod("my-kafka-12", owners=owners), label=None) == 12


def test_a_label_wins_over_the_name_and_the_annotation_over_the_label() -> None:
    labelled = pod("x-7f9", labels={"brokerId": "1004"}, owners=())
    assert broker_of(labelled, label="brokerId") == 1004
    annotated = pod(labels={"brokerId": "1004"}, annotations={"kafka.regent.dev/broker-id": "9"})
    assert broker_of(annotated, label="brokerId") == 9


@pytest.mark.parametrize(
    ("body", "label", "message"),
    [
        (pod("kafka-x"), None, "pod kafka-x is not one of a StatefulSet with a number at the end"),
        (pod("kafka-1", owners=()), None, "pod kafka-1 is not one of a StatefulSet .* annotation"),
        (
            pod("kafka-1", owners=({"kind": "ReplicaSet", "name": "kafka", "controller": True},)),
            None,
            "is not one of a StatefulSet",
        ),
        (pod("kafka-1"), "brokerId", "pod kafka-1 has no label brokerId, which eviction_broker_id"),
        (pod(labels={"id": "b4"}), "id", "the label id of pod broker-4 is 'b4', which is no id"),
        (
            pod(annotations={"kafka.regent.dev/broker-id": "-1"}),
            None,
            "the annotation kafka.regent.dev/broker-id of pod broker-4 is '-1'",
        ),
        (pod("b-99999999999"), None, "the end of the name of pod b-99999999999 is '99999999999'"),
    ],
)
def test_a_pod_whose_broker_is_not_known_is_named(
    body: dict[str, Any], label: str | None, message: str
) -> None:
    with pytest.raises(UnknownBrokerError, match=message):
        broker_of(body, label=label)


@pytest.mark.parametrize("phase", ["Pending", "Succeeded", "Failed"])
def test_pods_without_a_running_broker_are_out_of_use(phase: str) -> None:
    assert is_out_of_use(pod(phase=phase))
    assert is_out_of_use(pod(deleted=True))


@pytest.mark.parametrize("phase", ["Running", "Unknown"])
def test_a_broker_that_runs_or_may_run_is_not(phase: str) -> None:
    """Unknown: the node does not answer, the broker may run on."""
    assert not is_out_of_use(pod(phase=phase, ready=False))


def test_a_pod_is_ready_if_it_says_so_and_stays() -> None:
    assert is_ready(pod())
    assert not is_ready(pod(ready=False))
    assert not is_ready(pod(deleted=True))
    assert not is_ready({"metadata": {"name": "new"}})

"""When a broker's pod may be evicted, and what is answered until then."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from http import HTTPStatus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regent.kube.eviction.drain_records import KnownDrain, new_drain
from regent.kube.eviction.rules import Decision, decide
from regent.kube.eviction.settings import EvictionSettings
from regent.resources.broker_drain import BrokerDrain, DrainMode
from tests.support.present import present
from tests.unit.kube.eviction.builders import NOW, POD, SETTINGS, drain

REPLICAS = replace(SETTINGS, mode=DrainMode.REPLICAS)


def decided(*drains: KnownDrain, settings: EvictionSettings = SETTINGS) -> Decision:
    return decide(POD, drains, settings, now=NOW)


def is_allowed(decision: Decision) -> bool:
    return decision.verdict.refused_with is None


def test_a_drain_is_made_if_there_is_none_for_the_broker() -> None:
    decision = decided(drain("other", 5, drained=True))
    assert decision.creates
    assert decision.verdict.refused_with is HTTPStatus.TOO_MANY_REQUESTS
    assert decision.verdict.message == (
        "broker 4 is not drained yet: BrokerDrain kafka/eviction-broker-4 was created for this "
        "eviction"
    )


def test_what_is_made_is_a_drain_that_is_found_again() -> None:
    settings = replace(REPLICAS, cluster_name="east", namespace="ops")
    body = new_drain(POD, settings, now=NOW)
    body["metadata"] |= {"uid": "u", "generation": 1}
    known = KnownDrain.read(body)
    assert isinstance(known.parsed, BrokerDrain)
    assert known.parsed.spec.brokers == (4,)
    assert known.parsed.spec.mode is DrainMode.REPLICAS
    assert present(known.parsed.spec.cluster_ref).name == "east"
    assert str(known) == "ops/eviction-east-broker-4"
    assert known.record is not None
    assert (known.record.namespace, known.record.pod) == ("kafka", "broker-4")
    assert (known.record.uid, known.record.asked_at) == ("uid-1", NOW)
    decision = decided(known, settings=settings)
    assert not decision.creates
    assert "no Regent has looked at it yet" in decision.verdict.message


def test_it_is_waited_for() -> None:
    decision = decided(drain(made_for=POD))
    assert not decision.creates
    assert decision.notes is None
    assert decision.verdict.message == (
        "broker 4 is not drained yet: BrokerDrain kafka/eviction-broker-4 is at work "
        "(Moving: 3 of 5 partitions have moved)"
    )


def test_blockers_are_named() -> None:
    blocker = {"reason": "UnderReplicated", "topic": "t", "partition": 3, "message": "one replica"}
    decision = decided(drain(made_for=POD, blockers=(blocker, blocker)))
    assert "(2 blockers; t-3: UnderReplicated: one replica)" in decision.verdict.message


def test_a_pod_that_is_ready_is_none_of_a_broker_that_the_cluster_does_not_have() -> None:
    """Its broker has another id, and is not drained."""
    unknown = drain(made_for=POD, drained=True, reason="BrokersUnknown")
    decision = decided(unknown)
    assert decision.verdict.refused_with is HTTPStatus.TOO_MANY_REQUESTS
    assert "has no broker 4, as BrokerDrain kafka/eviction-broker-4" in decision.verdict.message
    assert "annotation kafka.regent.dev/broker-id" in decision.verdict.message
    assert is_allowed(decide(POD._replace(is_ready=False), [unknown], SETTINGS, now=NOW))
    assert is_allowed(decided(unknown, drain("maintenance", 4, drained=True)))


def test_a_status_of_before_a_change_says_nothing() -> None:
    decision = decided(drain(made_for=POD, drained=True, generation=2))
    assert not is_allowed(decision)
    assert "no Regent has looked at it yet" in decision.verdict.message


def test_a_drain_of_somebody_else_counts_if_its_mode_is_enough() -> None:
    both = drain("maintenance", 3, 4, mode="Replicas", drained=True)
    assert is_allowed(decided(both))
    assert is_allowed(decided(both, settings=REPLICAS))
    waiting = decided(drain("maintenance", 3, 4))
    assert not waiting.creates
    assert "BrokerDrain kafka/maintenance is at work" in waiting.verdict.message
    leaders_only = decided(drain("maintenance", 4, drained=True), settings=REPLICAS)
    assert not leaders_only.creates
    assert leaders_only.verdict.message.endswith(
        "BrokerDrain kafka/maintenance has the mode Leadership, and evictions need Replicas: "
        "delete it"
    )


@pytest.mark.parametrize(
    ("known", "message"),
    [
        (
            drain("m", 4, desired="Paused", drained=True),
            "BrokerDrain kafka/m is paused: set its desiredState to Drained",
        ),
        (
            drain("m", 4, desired="Undone", drained=True),
            "BrokerDrain kafka/m of before is being undone (Moving: ",
        ),
        (
            drain(made_for=POD, desired="Undone", phase="Undone"),
            "BrokerDrain kafka/eviction-broker-4 of before is being undone",
        ),
        (
            drain(made_for=POD, deleted=True, drained=True),
            "BrokerDrain kafka/eviction-broker-4 is being deleted; then another one is created",
        ),
        (
            drain(),
            "BrokerDrain kafka/eviction-broker-4 should be the one for evictions of its pod, and "
            "is none that was made for that: delete it",
        ),
        (drain("eviction-broker-4", 5, made_for=POD), "is none that was made for that: delete it"),
        (
            drain(made_for=POD, spec={"brokers": "all"}),
            "BrokerDrain kafka/eviction-broker-4 cannot be read (spec.brokers: ",
        ),
    ],
)
def test_what_does_not_let_it_go_is_named(known: KnownDrain, message: str) -> None:
    decision = decided(known)
    assert not decision.creates
    assert decision.verdict.refused_with is HTTPStatus.TOO_MANY_REQUESTS
    assert message in decision.verdict.message


def test_a_drain_of_somebody_else_that_is_over_does_not_count() -> None:
    undone = drain("m", 4, desired="Undone", phase="Undone")
    assert decided(undone, drain("n", 4, deleted=True, drained=True)).creates


def test_a_name_in_another_namespace_is_another_drain() -> None:
    assert decided(drain(namespace="else", made_for=POD, desired="Undone", phase="Undone")).creates


def test_who_asks_is_noted_once_a_minute_and_for_another_pod_at_once() -> None:
    fresh = drain(made_for=POD, asked=timedelta(seconds=59))
    assert decided(fresh).notes is None
    old = drain(made_for=POD, asked=timedelta(seconds=60))
    assert decided(old).notes is old
    early = drain(made_for=POD, asked=timedelta(seconds=-60))
    assert decided(early).notes is early
    replaced = drain(made_for=POD._replace(uid="uid-0"), drained=True)
    decision = decided(replaced)
    assert is_allowed(decision)
    assert decision.notes is replaced, "else its drain is undone while the pod goes"


@given(
    st.lists(
        st.builds(
            drain,
            st.sampled_from(["a", "b", "eviction-broker-4"]),
            st.sampled_from([4, 5]),
            mode=st.sampled_from(["Leadership", "Replicas"]),
            desired=st.sampled_from(["Drained", "Paused", "Undone"]),
            drained=st.sampled_from([None, False, True]),
            phase=st.sampled_from(["Draining", "Drained", "Undone"]),
            made_for=st.sampled_from([None, POD]),
            deleted=st.booleans(),
            generation=st.sampled_from([1, 2]),
        ),
        max_size=3,
    ),
    st.sampled_from([SETTINGS, REPLICAS]),
)
def test_no_pod_goes_unless_a_drain_of_its_broker_says_drained(
    drains: list[KnownDrain], settings: EvictionSettings
) -> None:
    decision = decide(POD, drains, settings, now=NOW)
    if not is_allowed(decision):
        assert decision.verdict.message.startswith("broker 4 is not drained yet: ")
        return
    assert not decision.creates
    assert any(
        isinstance(known.parsed, BrokerDrain)
        and 4 in known.parsed.spec.brokers
        and known.parsed.spec.desired_state == "Drained"
        and known.is_drained
        and (settings is SETTINGS or known.parsed.spec.mode is DrainMode.REPLICAS)
        for known in drains
    )

"""What the API server lets pass and what it refuses, by the schema and the rules of the CRD."""

from __future__ import annotations

from typing import Any

import pytest

from regent.model.topic import MAX_PARTITIONS
from sandbox.errors import CommandError
from tests.integration.kube.conftest import Namespace, topic

pytestmark = pytest.mark.integration


@pytest.mark.parametrize("value", ["1000", 1000, 0.5, True, None])
def test_a_configuration_value_is_a_scalar(namespace: Namespace, value: Any) -> None:
    namespace.apply(topic("orders", config={"retention.ms": value}))
    assert namespace.get("orders")["spec"]["config"] == {"retention.ms": value}


@pytest.mark.parametrize("value", [{"days": 1}, {}, [1], []], ids=repr)
def test_objects_and_lists_in_the_configuration_are_refused(
    namespace: Namespace, value: Any
) -> None:
    with pytest.raises(CommandError, match=r"spec\.config"):
        namespace.apply(topic("orders", config={"retention.ms": value}))


def test_the_last_key_can_be_taken_out_of_the_configuration(namespace: Namespace) -> None:
    """Server-side apply writes null where an applied map becomes empty."""
    for config in ({"retention.ms": 1000}, {}):
        namespace.apply(topic("orders", config=config))
    assert not namespace.get("orders")["spec"]["config"]


def test_no_more_partitions_than_the_controller_creates(namespace: Namespace) -> None:
    with pytest.raises(CommandError, match="less than or equal to 10000"):
        namespace.apply(topic("orders", partitions=MAX_PARTITIONS + 1))
    namespace.apply(topic("orders", partitions=MAX_PARTITIONS))


def _show_partitions(namespace: Namespace, count: int) -> None:
    namespace.patch_status("orders", {"partitions": count})


def test_partitions_can_be_corrected_before_the_topic_exists(namespace: Namespace) -> None:
    namespace.apply(topic("orders", partitions=300))
    namespace.apply(topic("orders", partitions=30))
    _show_partitions(namespace, 0)
    namespace.apply(topic("orders", partitions=3))
    assert namespace.get("orders")["spec"]["partitions"] == 3


def test_partitions_cannot_be_decreased_below_what_the_topic_has(namespace: Namespace) -> None:
    namespace.apply(topic("orders", partitions=300))
    _show_partitions(namespace, 6)
    namespace.apply(topic("orders", partitions=6))
    with pytest.raises(
        CommandError, match=r"partitions cannot be decreased below what the topic has"
    ):
        namespace.apply(topic("orders", partitions=5))
    # Somebody else made more of them: what is declared may stay, and may come nearer.
    _show_partitions(namespace, 9)
    namespace.apply(topic("orders", partitions=7, config={"retention.ms": 1}))


def test_partitions_and_replicas_may_be_left_out(namespace: Namespace) -> None:
    bare = topic("orders")
    bare["spec"] = {}
    namespace.apply(bare)
    assert "partitions" not in namespace.get("orders")["spec"]
    _show_partitions(namespace, 6)
    with pytest.raises(CommandError, match=r"partitions cannot be decreased"):
        namespace.apply(topic("orders", partitions=5))
    namespace.apply(topic("orders", partitions=6))
    namespace.apply(bare)
    assert "partitions" not in namespace.get("orders")["spec"]


def test_the_deletion_policy_stays_unset_unless_it_is_stated(namespace: Namespace) -> None:
    namespace.apply(topic("orders"))
    spec = namespace.get("orders")["spec"]
    assert "deletionPolicy" not in spec
    assert spec["onForeignDeletion"] == "Alert"

"""What is said about rights that are missing."""

from __future__ import annotations

from regent.kube.rights import LIST, NEEDED, Right, lack_of
from regent.resources.kafka_topic import KafkaTopic
from tests.support.present import present


def test_a_role_that_went_with_its_namespace_is_told_with_the_way_out() -> None:
    """Nobody can create a Role in a namespace that is being deleted."""
    problem = present(lack_of([LIST], KafkaTopic.kind, "shop").reading)
    assert "being deleted" in problem
    assert "`regent release --all --namespace shop`" in problem


def test_a_right_to_get_that_is_missing_is_named_and_keeps_nothing_from_being_served() -> None:
    """Resources are listed and watched. What somebody else has changed at the moment of a write is
    read again, and so is what a restored backup may lack."""
    get = Right("get")
    assert get in NEEDED
    lack = lack_of([get], KafkaTopic.kind, "shop")
    assert lack.reading is None
    assert lack.writing is not None
    assert "get kafkatopics.kafka.regent.dev in namespace shop" in lack.writing

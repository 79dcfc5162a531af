"""What is said about rights that are missing."""

from __future__ import annotations

from regent.kube.rights import LIST, lack_of
from regent.resources.kafka_topic import KafkaTopic


def test_a_role_that_went_with_its_namespace_is_told_with_the_way_out() -> None:
    """Nobody can create a Role in a namespace that is being deleted."""
    problem = lack_of([LIST], KafkaTopic.kind, "shop").reading
    assert problem is not None
    assert "being deleted" in problem
    assert "`regent release --all --namespace shop`" in problem

"""Which resources a Regent serves."""

from __future__ import annotations

from typing import Any

import pytest

from regent.reconcile.selection import ClusterSelection

EAST: dict[str, Any] = {"spec": {"clusterRef": {"name": "east"}}}
WEST: dict[str, Any] = {"spec": {"clusterRef": {"name": "west"}}}
UNNAMED: dict[str, Any] = {"spec": {}}
ALL = (EAST, WEST, UNNAMED)


@pytest.mark.parametrize(
    ("selection", "served"),
    [
        (ClusterSelection(), [UNNAMED]),
        (ClusterSelection(name="east"), [EAST]),
        (ClusterSelection(name="east", is_default=True), [EAST, UNNAMED]),
        (ClusterSelection(is_default=True), [UNNAMED]),
    ],
)
def test_a_resource_is_served_by_the_regent_of_the_cluster_it_names(
    selection: ClusterSelection, served: list[Any]
) -> None:
    assert [body for body in ALL if selection.serves(body)] == served


@pytest.mark.parametrize("spec", [None, "x", {"clusterRef": "east"}, {"clusterRef": {"name": 1}}])
def test_what_cannot_be_read_goes_to_the_default(spec: Any) -> None:
    """Somebody has to say what is wrong with it."""
    assert ClusterSelection().serves({"spec": spec})
    assert not ClusterSelection(name="east").serves({"spec": spec})

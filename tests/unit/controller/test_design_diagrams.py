"""The diagrams in DESIGN.md are those of the tables in ``states.py``."""

from __future__ import annotations

import re

import pytest

from regent.controller.state.states import (
    PARTITION_PREVIOUS_STATES,
    REPLICA_PREVIOUS_STATES,
    PartitionState,
    ReplicaState,
)
from scripts import generate


def test_they_are_up_to_date() -> None:
    for path, content in generate._state_diagrams().items():
        assert path.read_text(encoding="utf-8") == content, "run `make generate`"


@pytest.mark.parametrize(
    ("name", "states", "table"),
    [
        ("partitions", PartitionState, PARTITION_PREVIOUS_STATES),
        ("replicas", ReplicaState, REPLICA_PREVIOUS_STATES),
    ],
)
def test_every_state_and_every_legal_transition_is_drawn(
    name: str,
    states: type[PartitionState] | type[ReplicaState],
    table: dict[PartitionState, frozenset[PartitionState]],
) -> None:
    (text,) = generate._state_diagrams().values()
    diagram = text.partition(f"<!-- generated: {name} -->")[2].partition("<!-- end -->")[0]
    edges = re.findall(r"^    (\w+) --> (\w+)$", diagram, flags=re.MULTILINE)
    assert len(edges) == len(set(edges)) == sum(map(len, table.values()))
    drawn = {state.lower() for edge in edges for state in edge}
    assert drawn == {state.name.replace("_", "").lower() for state in states}

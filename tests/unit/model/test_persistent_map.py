"""The mapping behind the view: each copy stays what it was, and a new one is cheap."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regent.model.persistent_map import PersistentMap


@dataclass(frozen=True)
class Clashing:
    """A key whose hash many others have."""

    number: int

    def __hash__(self) -> int:
        return self.number % 3


keys: st.SearchStrategy[Any] = (
    st.integers(-200, 200) | st.integers(0, 40).map(Clashing) | st.text(max_size=2)
)
change = st.tuples(st.dictionaries(keys, st.integers(), max_size=40), st.lists(keys, max_size=20))


@settings(max_examples=50, deadline=None)
@given(st.lists(change, max_size=8))
def test_every_copy_equals_a_dict_and_stays_so(
    changes: list[tuple[dict[Any, int], list[Any]]],
) -> None:
    copies: list[tuple[PersistentMap[Any, int], dict[Any, int]]] = [(PersistentMap(), {})]
    for added, removed in changes:
        before, expected = copies[-1]
        kept = {key: value for key, value in expected.items() if key not in removed}
        copies.append((before.updated(added, removed=removed), kept | added))
    for copy, expected in copies:
        assert len(copy) == len(expected)
        assert dict(copy) == expected
        assert all(copy[key] == value for key, value in expected.items())
        assert copy == PersistentMap(expected)


def test_it_is_a_mapping() -> None:
    mapping = PersistentMap({"a": 1})
    assert isinstance(mapping, Mapping)
    assert mapping == {"a": 1}
    assert mapping.get("b") is None
    assert "b" not in mapping
    with pytest.raises(KeyError):
        mapping["b"]
    assert repr(mapping) == "PersistentMap({'a': 1})"


def _containers(mapping: PersistentMap[Any, Any]) -> list[Any]:
    found, waiting = [], [mapping._root]
    while waiting:
        found.append(node := waiting.pop())
        if isinstance(node, tuple):
            waiting.extend(node)
    return found


@pytest.mark.parametrize("size", [100, 10_000])
def test_a_change_copies_only_the_path_to_its_entry(size: int) -> None:
    mapping = PersistentMap({str(n): n for n in range(size)})
    kept = {id(node) for node in _containers(mapping)}
    copied = [node for node in _containers(mapping.updated({"7": -7})) if id(node) not in kept]
    assert len(copied) <= 5

"""The mapping behind the view: each copy stays what it was, and a new one is cheap."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regent.model.persistent_map import PersistentMap, changed_keys


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
        assert all(copy[key] == copy.get(key) == value for key, value in expected.items())
        assert copy.get("no such key") is None
        assert copy.get("no such key", 7) == 7
        assert copy == PersistentMap(expected)


@settings(max_examples=50, deadline=None)
@given(st.lists(change, min_size=1, max_size=4))
def test_changed_keys_are_those_with_other_objects(
    changes: list[tuple[dict[Any, int], list[Any]]],
) -> None:
    copies: list[PersistentMap[Any, object]] = [PersistentMap()]
    for added, removed in changes:
        copies.append(copies[-1].updated({key: object() for key in added}, removed=removed))
    for before, after in itertools.product(copies, repeat=2):
        expected = {key for key in (*before, *after) if before.get(key) is not after.get(key)}
        pairs: list[tuple[Mapping[Any, object], Mapping[Any, object]]] = [
            (before, after),
            (dict(before), after),
        ]
        for one, other in pairs:
            found = list(changed_keys(one, other))
            assert len(found) == len(expected)
            assert set(found) == expected


class Counted:
    """A key that counts how often it is looked at."""

    looks = 0

    def __hash__(self) -> int:
        Counted.looks += 1
        return id(self) >> 4


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

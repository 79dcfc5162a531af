"""YAML of people: what it would become is bounded before it is made."""

from __future__ import annotations

import pytest
import yaml

from regent.files.yaml_loading import load_yaml


def test_references_are_allowed() -> None:
    text = "a: &a {x: [1, 2]}\nb: *a\nc:\n  <<: *a\n  y: 3\n"
    assert load_yaml(text) == {"a": {"x": [1, 2]}, "b": {"x": [1, 2]}, "c": {"x": [1, 2], "y": 3}}
    assert load_yaml("") is None


def test_references_that_grow_without_measure_are_refused() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]
    with pytest.raises(yaml.YAMLError, match="more than 100,000 values, references included"):
        load_yaml("\n".join(lines))


def test_a_long_text_that_is_there_again_and_again_counts() -> None:
    text = f"a: &a {'x' * 100_000}\nb: [{', '.join(['*a'] * 1_000)}]\n"
    with pytest.raises(yaml.YAMLError, match="more than 100,000 values"):
        load_yaml(text)


@pytest.mark.parametrize("text", ["a: &a [*a]", "&a {b: *a}", "a: &a {b: [1, {c: *a}]}"])
def test_a_value_that_contains_itself_is_refused(text: str) -> None:
    with pytest.raises(yaml.YAMLError, match="leads to what it is in"):
        load_yaml(text)


@pytest.mark.parametrize("text", ["a: 1\na: 2", "a: 1\n---\nb: 2", "[" * 1_000])
def test_what_is_ambiguous_or_too_deep_is_refused(text: str) -> None:
    with pytest.raises(yaml.YAMLError):
        load_yaml(text)

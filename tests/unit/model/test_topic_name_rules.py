"""Which namespace may declare which topics."""

from __future__ import annotations

import pytest

from regent.model.topic_name_rules import TopicNameRules

RULES = TopicNameRules.parse(["*={namespace}.*", "team-a=orders", "platform-*=*"])


@pytest.mark.parametrize(
    ("namespace", "topic", "allowed"),
    [
        ("team-a", "team-a.clicks", True),
        ("team-a", "orders", True),
        ("team-a", "team-b.clicks", False),
        ("team-a", "team-a", False),
        ("team-b", "orders", False),
        ("platform-1", "__consumer_offsets", True),
        ("platform", "orders", False),
    ],
)
def test_what_one_rule_allows_is_allowed(namespace: str, topic: str, allowed: bool) -> None:
    assert RULES.allow(namespace, topic) is allowed


def test_without_rules_everything_is_allowed() -> None:
    assert TopicNameRules().allow("team-a", "orders")


def test_case_and_dots_are_what_they_are() -> None:
    rules = TopicNameRules.parse(["a=x.y"])
    assert not rules.allow("a", "xzy")
    assert not rules.allow("a", "X.y")


@pytest.mark.parametrize(
    "text", ["", "team-a", "=x", "team-a=", "Team=x", "a=x y", "a={name}.*", "a=[x]"]
)
def test_what_is_no_rule_is_refused_by_name(text: str) -> None:
    with pytest.raises(ValueError, match="is no rule"):
        TopicNameRules.parse([text])

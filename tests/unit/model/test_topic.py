"""Topic names and ids as Kafka has them."""

from __future__ import annotations

import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regent.model.topic import (
    ZERO_TOPIC_ID,
    metric_name,
    new_topic_id,
    new_topic_name_problem,
    topic_id_from_text,
    topic_id_to_text,
    topic_name_problem,
)


@pytest.mark.parametrize(
    "name", ["a", "orders", "__consumer_offsets", "A.b-c_9", "...", "a" * 249, "-", ".a"]
)
def test_legal_names(name: str) -> None:
    assert topic_name_problem(name) is None


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("", "is empty"),
        (".", "'.' is reserved"),
        ("..", "'..' is reserved"),
        ("a" * 250, "has 250 characters; at most 249"),
        ("a b", "other than ASCII letters"),
        ("a/b", "other than ASCII letters"),
        ("größe", "other than ASCII letters"),
        ("a\n", "other than ASCII letters"),
        ("٣", "other than ASCII letters"),
    ],
)
def test_illegal_names_say_why(name: str, said: str) -> None:
    assert said in (topic_name_problem(name) or "")
    assert new_topic_name_problem(name) == topic_name_problem(name)


def test_no_topic_is_created_where_kraft_has_its_log() -> None:
    assert "KRaft's own log" in (new_topic_name_problem("__cluster_metadata") or "")
    assert topic_name_problem("__cluster_metadata") is None  # one that exists is served
    assert new_topic_name_problem("__consumer_offsets") is None


def test_metric_names_do_not_tell_dots_and_underscores_apart() -> None:
    assert metric_name("a.b") == metric_name("a_b")
    assert metric_name("a.b_c") == metric_name("a_b.c")
    assert metric_name("a.b") != metric_name("a-b")
    assert metric_name("a.b") != metric_name("ab")


def test_ids_print_as_kafka_prints_them() -> None:
    assert topic_id_to_text(ZERO_TOPIC_ID) == "AAAAAAAAAAAAAAAAAAAAAA"
    assert topic_id_from_text("ngtY817YTzqcCg0-KjxvEQ") == uuid.UUID(
        "9e0b58f3-5ed8-4f3a-9c0a-0d3e2a3c6f11"
    )


def test_new_ids_are_no_option_to_a_tool() -> None:
    texts = {topic_id_to_text(new_topic_id()) for _ in range(2000)}
    assert len(texts) == 2000
    assert not [text for text in texts if text.startswith("-")]


@given(st.uuids())
def test_ids_survive_the_round_trip(topic_id: uuid.UUID) -> None:
    text = topic_id_to_text(topic_id)
    assert len(text) == 22
    assert topic_id_from_text(text) == topic_id


@pytest.mark.parametrize(
    "text", ["", "AAAA", "AAAAAAAAAAAAAAAAAAAAAAAAAA", "ü" * 22, "!!!!!!!!!!!!!!!!!!!!!!"]
)
def test_other_texts_are_no_ids(text: str) -> None:
    with pytest.raises(ValueError):
        topic_id_from_text(text)

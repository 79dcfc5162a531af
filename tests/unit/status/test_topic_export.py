"""What `regent export topics` reads, and what it prints."""

from __future__ import annotations

import asyncio
import uuid

import pytest
import yaml

from regent.status.reader import ClusterReader
from regent.status.topic_export import Export, ExportOptions, read_topics, render, render_all
from regent.zk_data import paths
from tests.unit.controller.world import World
from tests.unit.status.telling import Reads


def exported(world: World, **options: object) -> Export:
    reader = ClusterReader(Reads(world.zookeeper), "")
    wanted = ExportOptions(**options)  # type: ignore[arg-type]
    return asyncio.run(read_topics(reader, wanted))


def a_cluster() -> World:
    world = World()
    world.create_topic("orders", {0: (1, 2), 1: (2, 1)}, config={"retention.ms": "5"})
    world.create_topic("payments", {0: (1,)}, topic_id=uuid.UUID(int=1))
    world.create_topic("__consumer_offsets", {0: (1,)})
    return world


def test_every_topic_is_a_document() -> None:
    found = exported(a_cluster(), namespace="shop")
    assert found.problems == ()
    orders, payments = yaml.safe_load_all(render_all(found.topics))
    assert orders["metadata"] == {"name": "orders", "namespace": "shop"}
    assert orders["spec"] == {"partitions": 2, "replicas": 2, "config": {"retention.ms": "5"}}
    assert payments["spec"] == {"partitions": 1, "replicas": 1}


def test_patterns_and_internal_topics() -> None:
    world = a_cluster()
    assert list(exported(world, patterns=("pay*", "nothing")).topics) == ["payments"]
    assert list(exported(world, with_internal=True).topics) == [
        "__consumer_offsets",
        "orders",
        "payments",
    ]
    assert list(exported(world, patterns=("__*",)).topics) == []


def test_topics_that_are_being_deleted_are_left_out() -> None:
    world = a_cluster()
    world.put(paths.delete_topic("orders"), b"")
    assert list(exported(world).topics) == ["payments"]


def test_patterns_by_which_nothing_is_exported_are_named_with_the_reason() -> None:
    world = a_cluster()
    world.create_topic("gone", {0: (1,)})
    world.put(paths.delete_topic("gone"), b"")
    found = exported(world, patterns=("ordres", "orders", "__*", "go*"))
    assert list(found.topics) == ["orders"]
    assert found.unmatched == (
        "no topic matches 'ordres'",
        "only internal topics match '__*'; include them with --internal",
        "only topics that are being deleted match 'go*'",
    )
    assert exported(world, patterns=("__*",), with_internal=True).unmatched == ()
    assert exported(world).unmatched == ()


def test_what_cannot_be_read_is_named_and_the_rest_is_exported() -> None:
    world = a_cluster()
    world.put(paths.topic("broken"), b"{")
    world.put(paths.topic("empty"), b'{"version":1,"partitions":{}}')
    world.put(paths.topic_config("payments"), b"[]")
    found = exported(world)
    assert list(found.topics) == ["orders"]
    assert [problem.split(":")[0] for problem in found.problems] == [
        "topic broken",
        "topic empty",
        "topic payments",
    ]


def test_what_is_left_out_is_said_in_a_comment() -> None:
    world = a_cluster()
    world.create_topic("odd", {0: (1, 2), 1: (3,)})
    text = render(exported(world, patterns=("odd",)).topics["odd"])
    assert text.startswith(
        "# Left out: replicas: partitions have different numbers of them, 1 and 2\napiVersion: "
    )
    assert yaml.safe_load(text)["spec"] == {"partitions": 2}


@pytest.mark.parametrize("name", ["y", "n", "on", "null", "1e3", "0o17", "5e-1", "007", "---"])
def test_names_that_yaml_reads_as_another_type_are_quoted(name: str) -> None:
    world = World()
    world.create_topic(name, {0: (1,)})
    assert f'ame: "{name}"\n' in render(exported(world).topics[name])


def test_values_are_quoted_and_plain_words_are_not() -> None:
    world = World()
    config = {"min.cleanable.dirty.ratio": "5e-1", "cleanup.policy": "compact"}
    world.create_topic("orders", {0: (1,)}, config=config)
    text = render(exported(world).topics["orders"])
    assert '    min.cleanable.dirty.ratio: "5e-1"\n' in text
    assert "    cleanup.policy: compact\n" in text
    assert "  name: orders\n" in text


def test_comments_have_no_character_that_yaml_forbids() -> None:
    world = World()
    world.create_topic("orders", {0: (1,)}, config={"a\x00\x1b\u2028b": "\U0001f600"})
    text = render(exported(world).topics["orders"])
    assert text.startswith("# Left out: config[")
    assert text.isascii()
    assert text.replace("\n", "").isprintable()

"""Topics with odd names and configuration values, exported and applied with kubectl."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Mapping

import pytest

from regent.model.topic import topic_name_problem
from regent.reconcile.topics.planning import plan_topic
from regent.resources.kafka_topic import KafkaTopic, parse_kafka_topic
from regent.status.reader import ClusterReader
from regent.status.topic_export import Export, ExportOptions, read_topics, render_all
from tests.integration.kube.conftest import Namespace
from tests.support.soak import soak
from tests.unit.controller.world import World
from tests.unit.reconcile.requests import READY, request, state, topic, view
from tests.unit.status.telling import Reads

pytestmark = pytest.mark.integration

Config = Mapping[str, str]

WORDS = (
    *("y", "Y", "n", "N", "yes", "Yes", "no", "NO", "on", "On", "off", "OFF", "true", "True"),
    *("false", "FALSE", "null", "Null", "NULL", "nan", "NaN", ".nan", ".NaN", ".inf", "-.inf"),
    *("0", "-0", "00", "007", "0o17", "0O17", "0x1F", "0xg", "0b101", "0b2", "1_000", "_1", "1_"),
    *("1e3", "1E3", "1e-3", "5e-1", ".5", "5.", "-1", "-.5", "1.0", "0.1.2", "e3", "1e", "1e400"),
    *("2001-12-14", "2001-12-14t21", "190.20.30", "12345678901234567890", "9007199254740993"),
    *("-", "--", "---", "...", "-a", ".a", "a.", "a-", "a..b", "a.-b", "_", "__", "-_-", "A-"),
    *("x" * 249, "X" * 249, "-" * 249, "." * 249, "_" * 249, "x" * 248 + "X", "1" * 249),
    *("orders", "Orders", "ORDERS", "my_topic", "my-topic", "my.topic", "my__topic", "null."),
)  # fmt: skip
"""Names of topics that YAML might read as something else, or that Kubernetes does not allow."""

LEGAL = {
    "min.cleanable.dirty.ratio": (
        *("5e-1", "5E-1", ".5", "+.5", "0.50", "1.", "1", "0", "-0", "-0.0", "1e0", "1e-400"),
        *("0x1p-1", "0.5d", "0.5f", " 0.5 ", "0.5\t", "0.1000000000000000055511151231257827"),
    ),
    "retention.ms": (
        *("-1", "+5", "007", "0", "-0", "604800000", "9223372036854775807", " 5", "5\n", "\t5\r\n"),
        *("\x005", "5\x1f"),
    ),
    "max.message.bytes": ("0", "010", "+1048588", "2147483647", " 1048588 "),
    "cleanup.policy": ("compact", "delete,compact", "delete, compact", " compact", "delete"),
    "compression.type": ("gzip", " producer", "zstd ", "uncompressed", "\tlz4"),
    "preallocate": ("true", "TRUE", "True", "false", "fALSE", " true", "false\n"),
    "message.format.version": (
        *("3.0", "2.8", "2.8-IV1", "0.10.0", "0.10.0-IV1", "1.0", "1.1-IV0", " 2.4"),
        *("2.8.'\"", "2.8.# no comment", "2.8.: yes", "2.8.\\", "2.8.{}", "2.8.*a &a !a"),
        *("2.8.\x1b\x7f", "2.8.\u0085\u00a0\u2028\u2029\ufeff", "2.8.\U0001f600"),
        *("2.8.\u00fc\ufffe", "2.8.a" + " b" * 200),
    ),
    "segment.ms": ("1", "+007"),
}  # fmt: skip
"""Values that a KafkaTopic declares, as people might have written the values."""

ILLEGAL = {
    "retention.ms": ("\u0665", "\uff15\uff10"),
    "segment.ms": ("1_000", "1e3", "0x10", "1" * 5000, "soon", "", "~", "null"),
    "nonsense": ("", "\x00", "# \u2028 \x1b[31m", "y"),
}
"""Values that the export leaves out."""


def names(count: int) -> list[str]:
    """The words, and names made of the characters that numbers and dates have."""
    draw = random.Random(1)
    made = [
        "".join(draw.choices("0019eExXoObByYnN._-:+", k=draw.randint(1, 6))) for _ in range(count)
    ]
    return [name for name in dict.fromkeys((*WORDS, *made)) if topic_name_problem(name) is None]


def configs(count: int) -> list[Config]:
    """Configurations in which each value occurs, next to changing others."""
    draw = random.Random(2)
    values = {
        key: [*LEGAL.get(key, ()), *ILLEGAL.get(key, ())] for key in sorted({*LEGAL, *ILLEGAL})
    }
    return [
        {key: values[key][i % len(values[key])] for key in draw.sample(list(values), k=4)}
        for i in range(count)
    ]


def exported(topics: Mapping[str, Config]) -> Export:
    world = World()
    for name, config in topics.items():
        world.create_topic(name, {0: (1, 2), 1: (2, 1)}, config=dict(config))
    reader = ClusterReader(Reads(world.zookeeper), "")
    return asyncio.run(read_topics(reader, ExportOptions(with_internal=True)))


@pytest.mark.parametrize("made", [60, pytest.param(600, marks=soak("controller"))])
def test_applying_exported_topics_with_odd_names_and_values_changes_nothing(
    namespace: Namespace, made: int
) -> None:
    listed = names(made)
    topics = dict(zip(listed, configs(len(listed)), strict=True))
    assert len(topics) > len(WORDS)
    export = exported(topics)
    assert export.problems == ()
    assert export.topics.keys() == topics.keys()

    namespace.kubectl("apply", "-f", "-", stdin=render_all(export.topics))
    found = json.loads(namespace.kubectl("get", "ktopic", "-o", "json"))["items"]
    declared: dict[str, KafkaTopic] = {}
    for body in found:
        resource = parse_kafka_topic(body)
        assert isinstance(resource, KafkaTopic), body
        declared[resource.topic_name] = resource
    assert declared.keys() == topics.keys()
    assert len(found) == len(topics)

    values = {pair for resource in declared.values() for pair in resource.spec.config.items()}
    assert values == {(key, value) for key, legal in LEGAL.items() for value in legal}
    for name, resource in declared.items():
        spec = export.topics[name].manifest["spec"]
        assert resource.spec.config == spec.get("config", {})
        seen = view(topic(name=name))
        plan = plan_topic(request(resource, seen, config=topics[name]))
        assert plan.commands == (), (name, topics[name])
        assert state(plan) == READY, (name, topics[name], plan.status)

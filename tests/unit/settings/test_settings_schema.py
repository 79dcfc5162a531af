"""The chart's schema takes a text only if Regent does, whose pods would end at their start else."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from regent.model.errors import ConfigurationError
from regent.settings.loading import load_settings

_SCHEMA = Path(__file__).resolve().parents[3] / "charts" / "regent" / "values.schema.json"
_TEXTS = (
    *("", "a", "a b", "a,b", "a:1", "[::1]", "::1", "::ffff:10.0.0.1", "fe80::1%eth0", "10.0.0.1"),
    *("http://a:1", "user@a", "a;b", "a/b", "a\\b", "x" * 254, "a=b", "a=", "=b", "a=b=c", "a b=c"),
    *("A://a:1", "A://:65535", "A://:65536", "A://:99999", "A://[::1]:1", "A://[a]:1", "A:a:1"),
    *("/a", "/regent", "/regent/a", "/regent/topic_ids/a", "/regent/topic_ids_", "/brokers/a"),
    *("/brokers_/a", "/a/brokers", "/a/..", "/a/./b", "/a/..b", "/a//b", "User:a", ":a", "*=a.*"),
    *("s3a://b/a", "s3a://b/a/", "s3a://b", "file:/a", "file:///a/..b", "s3a:b", "S3a://b", "s3a:"),
    *("s3a://b/../a", "s3a://b/a/.", "file:/..", "s3a://..", "s3a://k:s@b/a", "c@a://b", "a://k@b"),
    *(
        "s3a://b/a%2e",
        "s3a://b/a?c=d",
        "s3a://b/a#c",
        "s3a://b\\a",
        "s3a://b/a c",
        "a://k@b:1/c:d@e",
    ),
)
_NEEDED = {"endpoint_port": 0}
"""What gives every setting with a form an effect."""


def _shaped_settings() -> dict[str, dict[str, Any]]:
    """Settings that are texts, or lists of texts, of a form."""
    properties = json.loads(_SCHEMA.read_text())["properties"]["settings"]["properties"]
    found: dict[str, dict[str, Any]] = {}
    for name, schema in properties.items():
        for each in (*schema.get("anyOf", ()), schema.get("items", schema)):
            if "pattern" in each:
                found[name] = {**each, "is_list": "items" in schema}
    return found


@pytest.mark.parametrize("name", _shaped_settings())
def test_regent_takes_what_the_charts_schema_takes(name: str) -> None:
    shape = _shaped_settings()[name]
    refused = shape.get("not", {}).get("pattern")
    for text in _TEXTS:
        if not re.search(shape["pattern"], text) or (refused and re.search(refused, text)):
            continue
        value = [text] if shape["is_list"] else text
        try:
            load_settings({"zookeeper": "z:1", **_NEEDED, name: value})
        except ConfigurationError as error:
            pytest.fail(f"the schema takes {value!r}, Regent does not: {error}")


def test_the_charts_schema_takes_hosts_labels_and_paths_that_regent_takes() -> None:
    shapes = _shaped_settings()
    for name, texts in {
        "replica_advertised_host": ("a-1.kafka_1.svc", "::1", "::ffff:10.0.0.1", "fe80::1%eth0"),
        "eviction_pods": ("a=b", "a="),
        "election_path": ("/regent/a", "/brokers_/a", "/a/brokers", "/a/..b", "/regent/topic_ids_"),
        "endpoint_further_listeners": ("A://:0", "A://a:65535", "A://[::1]:09093"),
    }.items():
        refused = shapes[name].get("not", {}).get("pattern", "(?!)")
        for text in texts:
            assert re.search(shapes[name]["pattern"], text), text
            assert not re.search(refused, text), text

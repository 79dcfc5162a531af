"""What the benchmark of KafkaTopics takes for Ready."""

from __future__ import annotations

import json

from benchmarks.kube_topics import Readiness


def event(
    name: str, ready: str | None = None, *, type_: str = "MODIFIED", version: str = "1"
) -> bytes:
    conditions = [] if ready is None else [{"type": "Ready", "status": ready, "reason": "R"}]
    status = {} if ready is None else {"status": {"conditions": conditions}}
    metadata = {"name": name, "resourceVersion": version}
    return json.dumps({"type": type_, "object": {"metadata": metadata, **status}}).encode()


def test_a_topic_is_ready_while_its_condition_is_true() -> None:
    seen = Readiness()
    for line in (event("a", type_="ADDED"), event("a", "False"), event("b", "True")):
        seen.take(line)
    assert list(seen.ready_at) == ["b"]
    seen.take(event("a", "True"))
    first = dict(seen.ready_at)
    seen.take(event("b", "True"))
    assert seen.ready_at == first, "it has been Ready since then"
    seen.take(event("b", "Unknown"))
    assert list(seen.ready_at) == ["a"]
    seen.take(event("a", "True", type_="DELETED"))
    assert seen.ready_at == {}
    assert seen.events == 7

"""Which deletion policies somebody has asked for, by the notes of a real API server."""

from __future__ import annotations

import json
from typing import Any

import pytest

from regent.resources.kafka_topic import filled_in_fields

CREATED_NOW: dict[str, Any] = {
    ".": {},
    "f:adoptionPolicy": {},
    "f:managementPolicy": {},
    "f:onForeignDeletion": {},
    "f:partitions": {},
}
"""Of the spec, what a client manages that has created the object under the present definition."""
CREATED_EARLY: dict[str, Any] = {
    ".": {},
    "f:adoptionPolicy": {},
    "f:deletionPolicy": {},
    "f:managementPolicy": {},
    "f:partitions": {},
}
"""The same, under the earliest definition."""
POLICY: dict[str, Any] = {"f:deletionPolicy": {}}
MANIFEST = "kubectl.kubernetes.io/last-applied-configuration"


def entry(
    spec: dict[str, Any], *, operation: str = "Update", keeps: bool = False, manager: str = "m"
) -> Any:
    """What is noted of one manager; ``keeps``: the manifest, too."""
    kept: dict[str, Any] = (
        {"f:metadata": {"f:annotations": {".": {}, f"f:{MANIFEST}": {}}}} if keeps else {}
    )
    return {"manager": manager, "operation": operation, "fieldsV1": {"f:spec": spec, **kept}}


def filled_in(*entries: Any, applied: dict[str, Any] | str | None = None, **spec: str) -> bool:
    """Whether the Delete of a KafkaTopic with these notes counts as filled in."""
    text = applied if isinstance(applied, str) else json.dumps({"spec": applied})
    annotations = {} if applied is None else {MANIFEST: text}
    metadata = {"name": "orders", "managedFields": list(entries), "annotations": annotations}
    full = {"partitions": 1, "deletionPolicy": "Delete", **spec}
    return bool(filled_in_fields({"metadata": metadata, "spec": full}))


def test_what_was_filled_in_while_an_object_was_read_is_nobodys() -> None:
    assert filled_in(entry(CREATED_NOW), entry({"f:config": {}}))
    assert filled_in(entry({"f:partitions": {}}, operation="Apply"))
    assert filled_in()


@pytest.mark.parametrize(
    "asking",
    [
        entry(POLICY),
        entry(POLICY, operation="Apply"),
        entry({**CREATED_NOW, **POLICY}),
    ],
)
def test_what_somebody_has_written_is_asked_for(asking: Any) -> None:
    assert not filled_in(asking)
    assert not filled_in(entry(CREATED_EARLY), asking)
    assert not filled_in(entry(CREATED_EARLY, keeps=True), asking, applied={"partitions": 1})


def test_who_has_created_it_under_the_earliest_definition_need_not_have_asked() -> None:
    assert filled_in(entry(CREATED_EARLY))


def test_the_manifest_that_kubectl_has_applied_says_what_its_manager_has_asked_for() -> None:
    early, now = entry(CREATED_EARLY, keeps=True), entry({**CREATED_NOW, **POLICY}, keeps=True)
    for noted in (early, now):
        assert filled_in(noted, applied={"partitions": 1})
        assert filled_in(noted, applied={"partitions": 1, "deletionPolicy": "Retain"})
        assert not filled_in(noted, applied={"partitions": 1, "deletionPolicy": "Delete"})
    # the same value was there already, so that nothing is noted of it
    assert not filled_in(entry(CREATED_NOW, keeps=True), applied={"deletionPolicy": "Delete"})


def test_who_has_created_it_early_need_not_have_asked_though_it_has_written_a_later_field() -> None:
    later = entry({**CREATED_EARLY, "f:onForeignDeletion": {}})
    assert filled_in(later, onForeignDeletion="Recreate")
    assert not filled_in(later, entry(POLICY), onForeignDeletion="Recreate")
    assert not filled_in(later, onForeignDeletion="Alert")  # filled in as it was created


def test_a_manifest_that_was_read_from_the_api_server_says_nothing() -> None:
    manifest = json.dumps({"metadata": {"uid": "4711"}, "spec": {"deletionPolicy": "Delete"}})
    keeps = entry({"f:partitions": {}}, keeps=True)
    assert filled_in(entry(CREATED_NOW), keeps, applied=manifest)
    assert filled_in(entry(CREATED_EARLY), keeps, applied=manifest)
    assert not filled_in(entry(CREATED_NOW), entry(POLICY, keeps=True), applied=manifest)


def test_what_was_there_before_anything_was_noted_is_nobodys() -> None:
    before = entry({**CREATED_NOW, **POLICY}, manager="before-first-apply")
    applied = entry({"f:partitions": {}}, operation="Apply")
    assert filled_in(before, applied)
    assert not filled_in(before, entry(POLICY, operation="Apply"))


@pytest.mark.parametrize("applied", ["", "{", "[]", '{"spec": 3}'])
def test_a_manifest_that_is_none_says_nothing(applied: str) -> None:
    assert filled_in(entry(CREATED_NOW), applied=applied)
    assert not filled_in(entry(POLICY), applied=applied)


@pytest.mark.parametrize("spec", [None, [], {}, {"deletionPolicy": "Retain"}])
def test_only_what_was_a_default_can_be_filled_in(spec: Any) -> None:
    assert filled_in_fields({"metadata": {"name": "orders"}, "spec": spec}) == ()

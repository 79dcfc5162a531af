"""Whether anybody has asked for what a field of a resource says.

An earlier definition may have had a default for a field. Under it the API server fills that in
whenever it reads an object, and stores it with the next write, of whatever; a later definition
leaves it there. What tells such a value from a wish is the object's own record, which every
write keeps and no definition prunes:

- ``metadata.managedFields``. A value that was filled in while an object was read is nobody's. But
  a client that creates or replaces an object (POST, PUT) is noted for the defaults, too: they are
  filled in before the API server compares.
- The manifest in the annotation that ``kubectl apply`` keeps, where it is used. What that manifest
  does not have, its manager has not asked for, whatever else is noted. ``kubectl replace`` puts
  there what it has written, even if that was read from the API server: such a manifest has a uid,
  which nobody makes up, and says nothing.

What stays unclear is not taken for a wish.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"

_NOBODY: Final = "before-first-apply"
"""Whom the API server notes for all fields of an object of which nothing was noted before."""


class LaterDefault(NamedTuple):
    """A field of the spec that has had a default ever since another one has none."""

    field: str
    value: object


def has_owner(body: Mapping[str, Any], field: str, *, later: LaterDefault) -> bool:
    """Whether somebody has asked for what a field of the spec says, which once was its default.

    Args:
        body: The object as the API has it, with all its metadata. Its spec has the field.
        field: Its name.
        later: Who has created an object and is not noted for this one has done so under a
            definition in which ``field`` had its default. Who is noted for another value than the
            default may have written that long afterwards.
    """
    spec_now = body["spec"]
    applied = _applied_spec(body)
    if applied is not None and applied.get(field) == spec_now[field]:
        return True
    is_later_default = spec_now.get(later.field, later.value) == later.value
    for entry in _entries(body):
        fields = _mapping(entry.get("fieldsV1"))
        spec = _mapping(fields.get("f:spec"))
        if f"f:{field}" not in spec or entry.get("manager") == _NOBODY:
            continue
        if entry.get("operation") == "Apply":
            return True  # of these nothing is filled in before they are noted
        if applied is not None and _keeps_manifest(fields):
            continue
        has_created = "." in spec
        if not has_created or (f"f:{later.field}" in spec and is_later_default):
            return True
    return False


def _entries(body: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    entries = body["metadata"].get("managedFields")
    return (_mapping(entry) for entry in (entries if isinstance(entries, list) else ()))


def _keeps_manifest(fields: Mapping[str, Any]) -> bool:
    annotations = _mapping(_mapping(fields.get("f:metadata")).get("f:annotations"))
    return f"f:{_APPLIED}" in annotations


def _applied_spec(body: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The spec of the manifest that was applied last; None if that is not known."""
    text = _mapping(body["metadata"].get("annotations")).get(_APPLIED)
    try:
        manifest = _mapping(json.loads(text or "{}"))
    except (TypeError, ValueError):
        return None  # written by hand
    is_read_back = "uid" in _mapping(manifest.get("metadata"))
    return None if is_read_back else _mapping(manifest.get("spec"))


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}

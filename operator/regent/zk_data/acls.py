"""Access control lists: ``/kafka-acl``, ``/kafka-acl-extended`` and the notifications of changes.

Source: ``kafka.zk.ZkAclStore``, ``kafka.security.authorizer.AclEntry``. Literal patterns are where
they have been since Kafka 0.9, prefixed ones (KIP-290) in the extended tree.
"""

from __future__ import annotations

from typing import Final

import msgspec

from regent.model.acls import (
    DENIES_EVERYTHING,
    Acl,
    AclOperation,
    PatternType,
    Permission,
    ResourcePattern,
    ResourceType,
)
from regent.model.errors import MalformedZNodeError
from regent.zk_data.decoding import Int32, json_decoder

ACLS: Final = "/kafka-acl"
EXTENDED_ACLS: Final = "/kafka-acl-extended"
ACL_CHANGES: Final = "/kafka-acl-changes"
EXTENDED_ACL_CHANGES: Final = "/kafka-acl-extended-changes"

STORES: Final = {
    PatternType.LITERAL: ACLS,
    PatternType.PREFIXED: f"{EXTENDED_ACLS}/{PatternType.PREFIXED}",
}
"""Where the patterns of each type are, one level above the types of resources."""

CHANGES: Final = (ACL_CHANGES, EXTENDED_ACL_CHANGES)
"""Parents of the notifications."""

_TYPES: Final = {each.lower(): each for each in ResourceType}
_TYPES_IN_UPPER_CASE: Final = {each.name: each for each in ResourceType}
_OPERATIONS: Final = {each.lower(): each for each in AclOperation}
_PERMISSIONS: Final = {each.lower(): each for each in Permission}


class _Entry(msgspec.Struct):
    principal: str
    permission_type: str = msgspec.field(name="permissionType")
    operation: str
    host: str


class _Entries(msgspec.Struct):
    version: Int32
    acls: list[_Entry]


class _ExtendedChange(msgspec.Struct):
    version: Int32
    resource_type: str = msgspec.field(name="resourceType")
    name: str
    pattern_type: str = msgspec.field(name="patternType")


_decode_entries = json_decoder(_Entries)
_decode_extended_change = json_decoder(_ExtendedChange)


def resource_type_of(name: str) -> ResourceType | None:
    """A resource type from any of the ways in which Kafka has written it; None if unknown."""
    return _TYPES.get(name.lower()) or _TYPES_IN_UPPER_CASE.get(name.upper())


def acl_path(pattern: ResourcePattern) -> str:
    """Where the entries of a pattern are."""
    return f"{STORES[pattern.pattern_type]}/{pattern.resource_type}/{pattern.name}"


def decode_acls(path: str, data: bytes) -> tuple[Acl, ...]:
    """The entries of a pattern; a node without content has none, as in Kafka.

    Raises:
        MalformedZNodeError: If one of them cannot be understood: what it denies is not known.
    """
    if not data:
        return ()
    decoded = _decode_entries(path, data)
    if decoded.version != 1:
        raise MalformedZNodeError(path, f"unsupported version {decoded.version}")
    return tuple(_acl(path, entry) for entry in decoded.acls)


def acls_or_denial(path: str, data: bytes) -> tuple[tuple[Acl, ...], MalformedZNodeError | None]:
    """The entries; of a node that cannot be understood one that denies everything, and why."""
    try:
        return decode_acls(path, data), None
    except MalformedZNodeError as error:
        return DENIES_EVERYTHING, error


def decode_acl_change(parent: str, path: str, data: bytes) -> ResourcePattern:
    """The pattern whose entries have changed.

    Args:
        parent: One of :data:`CHANGES`.

    Raises:
        MalformedZNodeError: If the notification cannot be understood.
    """
    if parent == EXTENDED_ACL_CHANGES:
        change = _decode_extended_change(path, data)
        type_name, name, pattern = change.resource_type, change.name, change.pattern_type
    else:
        try:
            text = data.decode()
        except UnicodeDecodeError as error:
            raise MalformedZNodeError(path, str(error)) from error
        type_name, _, name = text.partition(":")
        pattern = PatternType.LITERAL
    resource_type = resource_type_of(type_name)
    try:
        pattern_type = PatternType(pattern.lower())
    except ValueError:
        raise MalformedZNodeError(path, f"unknown pattern type {pattern[:100]!r}") from None
    if resource_type is None or not name:
        raise MalformedZNodeError(path, f"unknown resource {type_name[:100]!r}")
    return ResourcePattern(resource_type, name, pattern_type)


def _acl(path: str, entry: _Entry) -> Acl:
    operation = _OPERATIONS.get(entry.operation.lower())
    permission = _PERMISSIONS.get(entry.permission_type.lower())
    if operation is None or permission is None:
        what = entry.operation if operation is None else entry.permission_type
        raise MalformedZNodeError(path, f"{what[:100]!r} is not known")
    return Acl(entry.principal, permission, operation, entry.host)

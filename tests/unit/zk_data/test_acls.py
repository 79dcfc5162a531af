"""The znodes of access control lists."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

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
from regent.zk_data.acls import (
    ACL_CHANGES,
    EXTENDED_ACL_CHANGES,
    acl_path,
    acls_or_denial,
    decode_acl_change,
    decode_acls,
)

ENTRY = (
    b'{"version":1,"acls":[{"principal":"User:alice","permissionType":"Allow",'
    b'"operation":"Describe","host":"*"}]}'
)


def test_entries_as_kafka_writes_them() -> None:
    assert decode_acls("/p", ENTRY) == (
        Acl("User:alice", Permission.ALLOW, AclOperation.DESCRIBE, "*"),
    )
    assert decode_acls("/p", b"") == ()


@pytest.mark.parametrize(
    "data",
    [
        b"{}",
        b"not JSON",
        ENTRY.replace(b'"version":1', b'"version":2'),
        ENTRY.replace(b"Describe", b"Inspect"),
        ENTRY.replace(b"Allow", b"Perhaps"),
    ],
)
def test_entries_that_cannot_be_understood_deny_everything(data: bytes) -> None:
    with pytest.raises(MalformedZNodeError):
        decode_acls("/p", data)
    acls, problem = acls_or_denial("/p", data)
    assert acls == DENIES_EVERYTHING
    assert problem is not None


@given(data=st.binary())
def test_any_bytes_are_entries_or_denied(data: bytes) -> None:
    acls, problem = acls_or_denial("/p", data)
    assert problem is None or acls == DENIES_EVERYTHING


@pytest.mark.parametrize(
    ("parent", "data", "pattern"),
    [
        (ACL_CHANGES, b"Topic:orders", ResourcePattern(ResourceType.TOPIC, "orders")),
        (ACL_CHANGES, b"Group:a:b", ResourcePattern(ResourceType.GROUP, "a:b")),
        (
            EXTENDED_ACL_CHANGES,
            b'{"version":1,"resourceType":"TransactionalId","name":"x","patternType":"PREFIXED"}',
            ResourcePattern(ResourceType.TRANSACTIONAL_ID, "x", PatternType.PREFIXED),
        ),
        (
            EXTENDED_ACL_CHANGES,
            b'{"version":1,"resourceType":"DELEGATION_TOKEN","name":"x","patternType":"literal"}',
            ResourcePattern(ResourceType.DELEGATION_TOKEN, "x"),
        ),
    ],
)
def test_notifications_name_a_pattern(parent: str, data: bytes, pattern: ResourcePattern) -> None:
    assert decode_acl_change(parent, f"{parent}/acl_changes_1", data) == pattern


@pytest.mark.parametrize(
    ("parent", "data"),
    [
        (ACL_CHANGES, b"orders"),
        (ACL_CHANGES, b"Queue:orders"),
        (ACL_CHANGES, b"\xff"),
        (EXTENDED_ACL_CHANGES, b"Topic:orders"),
        (
            EXTENDED_ACL_CHANGES,
            b'{"version":1,"resourceType":"Topic","name":"x","patternType":"MATCH"}',
        ),
    ],
)
def test_a_notification_that_cannot_be_understood(parent: str, data: bytes) -> None:
    with pytest.raises(MalformedZNodeError):
        decode_acl_change(parent, f"{parent}/acl_changes_1", data)


def test_where_the_entries_are() -> None:
    assert acl_path(ResourcePattern(ResourceType.TOPIC, "*")) == "/kafka-acl/Topic/*"
    prefixed = ResourcePattern(ResourceType.CLUSTER, "kafka-", PatternType.PREFIXED)
    assert acl_path(prefixed) == "/kafka-acl-extended/prefixed/Cluster/kafka-"

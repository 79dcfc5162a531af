"""Decisions by access control lists, beside a reference that follows the words of the KIPs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regent.model.acls import (
    Acl,
    AclOperation,
    AclRules,
    Acls,
    Action,
    PatternType,
    Permission,
    ResourcePattern,
    ResourceType,
    is_authorized,
    java_host_address,
)
from tests.support.examples import scaled_examples

NAMES = ("a", "ab", "abc", "b", "*")
PRINCIPALS = ("User:alice", "User:bob", "User:*")
HOSTS = ("10.0.0.1", "10.0.0.2", "*")
OPERATIONS = (
    AclOperation.ALL,
    AclOperation.READ,
    AclOperation.ALTER,
    AclOperation.DESCRIBE,
    AclOperation.DESCRIBE_CONFIGS,
    AclOperation.ALTER_CONFIGS,
    AclOperation.CREATE,
)

IMPLIED_BY = {
    AclOperation.DESCRIBE: (
        AclOperation.READ,
        AclOperation.WRITE,
        AclOperation.DELETE,
        AclOperation.ALTER,
    ),
    AclOperation.DESCRIBE_CONFIGS: (AclOperation.ALTER_CONFIGS,),
}

entries = st.builds(
    Acl,
    st.sampled_from(PRINCIPALS),
    st.sampled_from(Permission),
    st.sampled_from(OPERATIONS),
    st.sampled_from(HOSTS),
)
patterns = st.builds(
    ResourcePattern,
    st.sampled_from((ResourceType.TOPIC, ResourceType.GROUP)),
    st.sampled_from(NAMES),
    st.sampled_from(PatternType),
)


def expected(
    lists: Mapping[ResourcePattern, Sequence[Acl]],
    rules: AclRules,
    principal: str,
    host: str,
    action: Action,
) -> bool:
    """The same by trying every entry of every pattern."""
    if principal in rules.super_users:
        return True
    relevant = [acl for pattern, acls in lists.items() if covers(pattern, action) for acl in acls]
    if not relevant:
        return rules.allow_everyone_if_no_acl_found
    mine = [
        acl
        for acl in relevant
        if acl.principal in (principal, "User:*") and acl.host in (host, "*")
    ]
    denied = {acl.operation for acl in mine if acl.permission is Permission.DENY}
    allowed = {acl.operation for acl in mine if acl.permission is Permission.ALLOW}
    if denied & {action.operation, AclOperation.ALL}:
        return False
    return bool(
        allowed & {action.operation, AclOperation.ALL, *IMPLIED_BY.get(action.operation, ())}
    )


def covers(pattern: ResourcePattern, action: Action) -> bool:
    if pattern.resource_type is not action.resource_type:
        return False
    if pattern.pattern_type is PatternType.PREFIXED:
        return action.name.startswith(pattern.name)
    return pattern.name in ("*", action.name)


@scaled_examples(10)
@given(
    lists=st.dictionaries(patterns, st.lists(entries, max_size=3), max_size=6),
    allows_by_default=st.booleans(),
    principal=st.sampled_from(("User:alice", "User:bob", "User:admin")),
    host=st.sampled_from(("10.0.0.1", "10.0.0.2", "10.0.0.3")),
    action=st.builds(
        Action,
        st.sampled_from([each for each in OPERATIONS if each is not AclOperation.ALL]),
        st.just(ResourceType.TOPIC),
        st.sampled_from(("a", "abcd", "b", "c")),
    ),
)
def test_a_decision_is_that_of_the_reference(
    lists: dict[ResourcePattern, list[Acl]],
    allows_by_default: bool,
    principal: str,
    host: str,
    action: Action,
) -> None:
    rules = AclRules(frozenset({"User:admin"}), allows_by_default)
    found = is_authorized(Acls(lists), rules, principal=principal, host=host, action=action)
    assert found == expected(lists, rules, principal, host, action)


def test_changes_replace_the_entries_of_a_pattern_and_leave_the_others() -> None:
    topic, group = (
        ResourcePattern(ResourceType.TOPIC, "t"),
        ResourcePattern(ResourceType.GROUP, "g"),
    )
    acl = Acl("User:alice", Permission.ALLOW, AclOperation.READ, "*")
    before = Acls({topic: (acl,), group: (acl,)})
    after = before.with_changes({topic: ()})
    assert dict(after.entries) == {group: (acl,)}
    assert set(before.entries) == {topic, group}


@pytest.mark.parametrize(
    ("address", "java"),
    [
        ("10.0.0.1", "10.0.0.1"),
        ("::1", "0:0:0:0:0:0:0:1"),
        ("fe80::1:2%eth0", "fe80:0:0:0:0:0:1:2"),
        ("::ffff:10.0.0.1", "10.0.0.1"),
        ("somewhere", "somewhere"),
    ],
)
def test_addresses_are_written_as_java_does(address: str, java: str) -> None:
    assert java_host_address(address) == java

"""Kafka's access control lists: who may do what, and how that is decided.

Source: ``kafka.security.authorizer.AclAuthorizer``, KIP-11, KIP-290. A principal may do what some
entry allows and none denies. Entries concern a resource by its very name, by ``*`` or by a prefix
of its name.
"""

from __future__ import annotations

import enum
import functools
import ipaddress
from collections.abc import Collection, Iterable, Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

WILDCARD: Final = "*"
"""All resources of a type, or all hosts."""

WILDCARD_PRINCIPAL: Final = "User:*"
CLUSTER_NAME: Final = "kafka-cluster"
"""Name of the only resource of type Cluster."""


class ResourceType(enum.StrEnum):
    """What can be protected. The values are names of znodes."""

    TOPIC = "Topic"
    GROUP = "Group"
    CLUSTER = "Cluster"
    TRANSACTIONAL_ID = "TransactionalId"
    DELEGATION_TOKEN = "DelegationToken"  # noqa: S105 - a type of resources
    USER = "User"


class PatternType(enum.StrEnum):
    """How the name of a pattern is meant."""

    LITERAL = "literal"
    PREFIXED = "prefixed"


class AclOperation(enum.StrEnum):
    """What can be done with a resource, as the entries in ZooKeeper have it."""

    ALL = "All"
    READ = "Read"
    WRITE = "Write"
    CREATE = "Create"
    DELETE = "Delete"
    ALTER = "Alter"
    DESCRIBE = "Describe"
    CLUSTER_ACTION = "ClusterAction"
    DESCRIBE_CONFIGS = "DescribeConfigs"
    ALTER_CONFIGS = "AlterConfigs"
    IDEMPOTENT_WRITE = "IdempotentWrite"
    CREATE_TOKENS = "CreateTokens"
    DESCRIBE_TOKENS = "DescribeTokens"


class Permission(enum.StrEnum):
    """Whether an entry allows or denies."""

    ALLOW = "Allow"
    DENY = "Deny"


_ALLOWED_BY: Final[Mapping[AclOperation, frozenset[AclOperation]]] = MappingProxyType(
    {
        AclOperation.DESCRIBE: frozenset(
            {
                AclOperation.DESCRIBE,
                AclOperation.READ,
                AclOperation.WRITE,
                AclOperation.DELETE,
                AclOperation.ALTER,
            }
        ),
        AclOperation.DESCRIBE_CONFIGS: frozenset(
            {AclOperation.DESCRIBE_CONFIGS, AclOperation.ALTER_CONFIGS}
        ),
    }
)
"""Operations the permission of which implies another."""


class Acl(NamedTuple):
    """One entry.

    Attributes:
        principal: Such as ``User:alice``.
        host: An address as Java writes it, or ``*``.
    """

    principal: str
    permission: Permission
    operation: AclOperation
    host: str


class ResourcePattern(NamedTuple):
    """What the entries of a znode are about."""

    resource_type: ResourceType
    name: str
    pattern_type: PatternType = PatternType.LITERAL


DENIES_EVERYTHING: Final = (Acl(WILDCARD_PRINCIPAL, Permission.DENY, AclOperation.ALL, WILDCARD),)
"""Stands for the entries of a pattern that cannot be read: better nobody than the wrong one."""


class Acls:
    """All entries of a cluster, for fast decisions. Immutable.

    Args:
        entries: By pattern.
    """

    def __init__(self, entries: Mapping[ResourcePattern, Collection[Acl]]) -> None:
        self._entries = {pattern: tuple(acls) for pattern, acls in entries.items()}
        lengths: dict[ResourceType, set[int]] = {}
        for pattern in self._entries:
            if pattern.pattern_type is PatternType.PREFIXED:
                lengths.setdefault(pattern.resource_type, set()).add(len(pattern.name))
        self._prefix_lengths = {kind: sorted(found) for kind, found in lengths.items()}

    @property
    def entries(self) -> Mapping[ResourcePattern, tuple[Acl, ...]]:
        return MappingProxyType(self._entries)

    @functools.cached_property
    def principals_with_hosts(self) -> frozenset[str]:
        """Those of which an entry names a host."""
        return frozenset(
            acl.principal for acls in self._entries.values() for acl in acls if acl.host != WILDCARD
        )

    def with_changes(self, changes: Mapping[ResourcePattern, Collection[Acl]]) -> Acls:
        """The same with other entries for some patterns; those without entries are gone."""
        merged = {**self._entries, **{p: tuple(acls) for p, acls in changes.items()}}
        return Acls({pattern: acls for pattern, acls in merged.items() if acls})

    def matching(self, resource_type: ResourceType, name: str) -> list[Acl]:
        """The entries that concern a resource."""
        patterns = [ResourcePattern(resource_type, WILDCARD)]
        if name != WILDCARD:
            patterns.append(ResourcePattern(resource_type, name))
        patterns += [
            ResourcePattern(resource_type, name[:length], PatternType.PREFIXED)
            for length in self._prefix_lengths.get(resource_type, ())
            if length <= len(name)
        ]
        return [acl for pattern in patterns for acl in self._entries.get(pattern, ())]


class AclRules(NamedTuple):
    """What decides beside the entries.

    Attributes:
        super_users: Principals that may do everything (``super.users``).
        allow_everyone_if_no_acl_found: What becomes of a resource without any entry.
    """

    super_users: frozenset[str] = frozenset()
    allow_everyone_if_no_acl_found: bool = False


class Action(NamedTuple):
    """Something that somebody asks to do."""

    operation: AclOperation
    resource_type: ResourceType
    name: str


CLUSTER_ACTION: Final = Action(AclOperation.CLUSTER_ACTION, ResourceType.CLUSTER, CLUSTER_NAME)
"""What only brokers may do."""


def is_authorized(
    acls: Acls, rules: AclRules, *, principal: str, host: str, action: Action
) -> bool:
    """Whether a principal may do something.

    Args:
        host: The address from which it asks, see :func:`java_host_address`.
    """
    if principal in rules.super_users:
        return True
    found = acls.matching(action.resource_type, action.name)
    if not found:
        return rules.allow_everyone_if_no_acl_found
    about = [
        acl
        for acl in found
        if acl.principal in (principal, WILDCARD_PRINCIPAL) and acl.host in (host, WILDCARD)
    ]
    wanted = frozenset({action.operation})
    if _mentioned(about, Permission.DENY, wanted):
        return False
    return _mentioned(about, Permission.ALLOW, _ALLOWED_BY.get(action.operation, wanted))


def java_host_address(address: str) -> str:
    """An IP address as Java's ``InetAddress.getHostAddress`` writes it, which entries have."""
    try:
        parsed = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(parsed, ipaddress.IPv4Address):
        return str(parsed)
    if parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    return ":".join(format(int(group, 16), "x") for group in parsed.exploded.split(":"))


def _mentioned(
    acls: Iterable[Acl], permission: Permission, operations: frozenset[AclOperation]
) -> bool:
    return any(
        acl.permission is permission
        and (acl.operation is AclOperation.ALL or acl.operation in operations)
        for acl in acls
    )

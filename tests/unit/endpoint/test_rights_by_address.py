"""Whose requests may not be passed on, because brokers would judge them by our address."""

from __future__ import annotations

import json

import pytest

from regent.controller.view import ClusterView
from regent.endpoint.acl_cache import AclCache
from regent.endpoint.authorization import Authorizer, AuthorizerKind
from regent.model.acls import AclRules
from regent.protocol.serving import Peer
from regent.simulation.zookeeper import InMemoryZooKeeper
from regent.zk_data.operations import Create
from tests.simulation.zookeeper_ports import InMemoryZooKeeperPort


def peer(principal: str) -> Peer:
    return Peer(
        address="10.0.0.1",
        port=1,
        principal=principal,
        listener="CLIENTS",
        security_protocol="SASL_PLAINTEXT",
    )


async def authorizer(kind: AuthorizerKind, entries: dict[str, str]) -> Authorizer:
    """One that decides by entries of a topic: principal -> host."""
    zookeeper = InMemoryZooKeeperPort(InMemoryZooKeeper().connect())
    acls = [
        {"principal": principal, "permissionType": "Allow", "operation": "Read", "host": host}
        for principal, host in entries.items()
    ]
    content = json.dumps({"version": 1, "acls": acls}).encode()
    path = ""
    for name, data in (("kafka-acl", b""), ("Topic", b""), ("t", content)):
        path = f"{path}/{name}"
        await zookeeper.multi([Create(path, data)])
    return Authorizer(
        kind=kind, rules=AclRules(), cache=AclCache(zookeeper), view=lambda: ClusterView()
    )


@pytest.mark.parametrize(
    ("entries", "depends"),
    [
        ({}, False),
        ({"User:alice": "*", "User:*": "*"}, False),
        ({"User:alice": "10.0.0.1"}, True),
        ({"User:*": "10.9.9.9"}, True),
        ({"User:bob": "10.0.0.1"}, False),
    ],
)
async def test_right_depends_on_a_host_in_an_entry(entries: dict[str, str], depends: bool) -> None:
    found = await authorizer(AuthorizerKind.KAFKA_ACLS, entries)
    assert await found.depends_on_address(peer("User:alice")) is depends


async def test_without_an_authorizer_nothing_depends_on_the_address() -> None:
    """Entries of former times decide nothing."""
    found = await authorizer(AuthorizerKind.NONE, {"User:*": "10.9.9.9"})
    assert not await found.depends_on_address(peer("User:alice"))

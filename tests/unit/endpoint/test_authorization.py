"""Access control lists in ZooKeeper decide who may ask what of the endpoint."""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

from regent.controller.view import ClusterView
from regent.endpoint.acl_cache import AclCache, AclsUnavailableError
from regent.endpoint.authorization import Authorizer, AuthorizerKind, PeerAccess
from regent.endpoint.broker_trust import BrokerTrust, TrustedAsBrokers
from regent.model.acls import (
    CLUSTER_NAME,
    AclOperation,
    AclRules,
    Action,
    ResourceType,
)
from regent.model.cluster import Broker
from regent.model.errors import ZooKeeperUnavailableError
from regent.model.topic_config import AUTHORIZER, BrokerFacts
from regent.protocol.served_apis import (
    ALTER_PARTITION_REASSIGNMENTS,
    ALTER_USER_SCRAM_CREDENTIALS,
    CREATE_PARTITIONS,
    CREATE_TOPICS,
    DELETE_TOPICS,
    ELECT_LEADERS,
    LIST_PARTITION_REASSIGNMENTS,
    UPDATE_FEATURES,
    Api,
)
from regent.protocol.serving import ANONYMOUS, Refusal, Refuse, ignore_refusal
from regent.simulation.zookeeper import InMemoryZooKeeper
from regent.zk_data.acls import ACL_CHANGES, ACLS, EXTENDED_ACL_CHANGES
from regent.zk_data.operations import Create, Delete, SetData, Written
from tests.simulation.zookeeper_ports import InMemoryZooKeeperPort
from tests.support.endpoint import LocalEndpoint, new_topic, peer_of
from tests.support.live_controller import LiveController
from tests.support.simulated_cluster import SimulatedCluster

ALICE, ADMIN = "User:alice", "User:admin"
MINUTE = datetime.timedelta(minutes=1)
ACL_AUTHORIZER = "kafka.security.authorizer.AclAuthorizer"


class AclZooKeeper:
    """Access control lists in memory, written as Kafka's authorizer does."""

    def __init__(self) -> None:
        self.server = InMemoryZooKeeper()
        self.client = self.server.connect()
        self.port = InMemoryZooKeeperPort(self.server.connect())

    def create_paths(self) -> None:
        """What an authorizer makes at its start."""
        for path in (ACLS, f"{ACLS}/Topic", f"{ACLS}/Cluster", ACL_CHANGES, EXTENDED_ACL_CHANGES):
            self.put(path)

    def put(self, path: str, data: bytes = b"", *, sequential: bool = False) -> None:
        exists = self.server.get(path) is not None
        operation = SetData(path, data) if exists else Create(path, data, sequential=sequential)
        (result,) = self.client.multi([operation])
        assert isinstance(result, Written), result

    def allow(
        self,
        operation: str,
        resource: str,
        *,
        principal: str = ALICE,
        host: str = "*",
        notify: bool = True,
    ) -> None:
        entry = {
            "principal": principal,
            "permissionType": "Allow",
            "operation": operation,
            "host": host,
        }
        self.put(
            f"{ACLS}/{resource.replace(':', '/')}",
            json.dumps({"version": 1, "acls": [entry]}).encode(),
        )
        if notify:
            self.put(f"{ACL_CHANGES}/acl_changes_", resource.encode(), sequential=True)

    def remove(self, resource: str) -> None:
        self.client.multi([Delete(f"{ACLS}/{resource.replace(':', '/')}")])
        self.put(f"{ACL_CHANGES}/acl_changes_", resource.encode(), sequential=True)


@pytest.fixture
def acls() -> AclZooKeeper:
    zookeeper = AclZooKeeper()
    zookeeper.create_paths()
    return zookeeper


def authorizer(
    zookeeper: AclZooKeeper,
    kind: AuthorizerKind = AuthorizerKind.KAFKA_ACLS,
    view: ClusterView | None = None,
    *,
    refuse: Refuse = ignore_refusal,
    **rules: Any,
) -> Authorizer:
    return Authorizer(
        kind=kind,
        rules=AclRules(**rules),
        cache=AclCache(zookeeper.port),
        view=lambda: view or ClusterView(),
        refuse=refuse,
    )


async def may(
    judge: Authorizer, operation: AclOperation, topic: str, *, principal: str = ALICE
) -> bool:
    action = Action(operation, ResourceType.TOPIC, topic)
    (allowed,) = await judge.allowed(peer_of(principal), [action])
    return allowed


async def test_what_was_granted_or_taken_away_counts_at_once(acls: AclZooKeeper) -> None:
    judge = authorizer(acls)
    assert not await may(judge, AclOperation.CREATE, "t")
    acls.allow("Create", "Topic:t")
    assert await may(judge, AclOperation.CREATE, "t")
    acls.remove("Topic:t")
    assert not await may(judge, AclOperation.CREATE, "t")
    acls.allow("All", "Topic:*")
    assert await may(judge, AclOperation.DELETE, "t")


async def test_what_is_refused_is_reported_with_the_missing_right(acls: AclZooKeeper) -> None:
    refused: list[Refusal] = []
    judge = authorizer(acls, refuse=refused.append)
    access = PeerAccess(judge, peer_of(ALICE, address="10.0.0.1"))
    assert not await access.to_cluster(AclOperation.CREATE, is_required=False)
    assert refused == []
    assert not await access.to_topics(AclOperation.CREATE, ["t"])
    assert not await access.to_cluster(AclOperation.ALTER)
    first, second = refused
    assert (first.principal, first.address, first.listener) == (ALICE, "10.0.0.1", "CONTROLLER")
    assert first.reason == "Create on Topic t is not granted"
    grant = f"kafka-acls --add --allow-principal {ALICE} --operation"
    assert first.remedy == f"{grant} Create --topic t"
    assert second.remedy == f"{grant} Alter --cluster"


async def test_names_of_a_peers_choice_are_short_and_quoted(acls: AclZooKeeper) -> None:
    """The command is there to be copied to a shell."""
    refused: list[Refusal] = []
    judge = authorizer(acls, refuse=refused.append)
    for name in ("t; reboot", "t" * 30_000):
        await PeerAccess(judge, peer_of("User:a $(id)")).to_topics(AclOperation.CREATE, [name])
    first, second = refused
    assert first.remedy.endswith(
        "--allow-principal 'User:a $(id)' --operation Create --topic 't; reboot'"
    )
    assert len(second.reason) + len(second.remedy) < 1_000


async def test_with_an_authorizer_that_is_not_kafkas_no_list_helps(acls: AclZooKeeper) -> None:
    refused: list[Refusal] = []
    view = broker_says("com.example.Authorizer")
    judge = authorizer(acls, AuthorizerKind.DETECT, view, refuse=refused.append)
    assert not await PeerAccess(judge, peer_of(ALICE)).to_cluster(AclOperation.ALTER)
    assert "endpoint_super_users" in refused[0].remedy


@pytest.mark.parametrize(
    ("principal", "remedy"),
    [
        ("User:broker", "--allow-principal User:broker --operation ClusterAction --cluster"),
        (ANONYMOUS, "endpoint_trusted_as_brokers"),
    ],
)
async def test_who_is_no_broker_is_reported(principal: str, remedy: str) -> None:
    refused: list[Refusal] = []
    trust = BrokerTrust(
        trusted=TrustedAsBrokers.NOBODY, super_users=(), view=ClusterView, refuse=refused.append
    )
    assert not await trust.is_broker(peer_of(principal))
    (found,) = refused
    assert found.principal == principal
    assert found.reason.startswith("ClusterAction on Cluster kafka-cluster is not granted")
    assert remedy in found.remedy


async def test_a_look_reads_only_what_has_changed(acls: AclZooKeeper) -> None:
    acls.allow("Create", "Topic:t")
    judge = authorizer(acls)
    assert await may(judge, AclOperation.CREATE, "t")
    # Without a notification nobody reads it again.
    acls.allow("Describe", "Topic:t", notify=False)
    assert await may(judge, AclOperation.CREATE, "t")
    acls.put(f"{ACL_CHANGES}/acl_changes_", b"no pattern", sequential=True)
    assert not await may(judge, AclOperation.CREATE, "t")


async def test_malformed_list_denies(acls: AclZooKeeper, caplog: pytest.LogCaptureFixture) -> None:
    acls.allow("All", "Topic:*")
    acls.put(f"{ACLS}/Topic/t", b"broken")
    judge = authorizer(acls)
    assert not await may(judge, AclOperation.CREATE, "t")
    assert await may(judge, AclOperation.CREATE, "u")
    assert "Malformed access control list" in caplog.text


async def test_without_zookeeper_nobody_can_say(acls: AclZooKeeper) -> None:
    class Down(InMemoryZooKeeperPort):
        async def get_children(self, *_: Any, **__: Any) -> Any:
            raise ZooKeeperUnavailableError("no server answers")

    acls.port = Down(acls.server.connect())
    with pytest.raises(AclsUnavailableError, match="no server answers"):
        await may(authorizer(acls), AclOperation.CREATE, "t")


async def test_super_users_may_everything(acls: AclZooKeeper) -> None:
    judge = authorizer(acls, super_users=frozenset({ADMIN}))
    assert await may(judge, AclOperation.CREATE, "t", principal=ADMIN)


async def test_hosts_are_compared_as_java_writes_them(acls: AclZooKeeper) -> None:
    acls.allow("Create", "Topic:t", host="0:0:0:0:0:0:0:1")
    judge = authorizer(acls)
    action = Action(AclOperation.CREATE, ResourceType.TOPIC, "t")
    assert await judge.allowed(peer_of(ALICE, address="::1"), [action]) == [True]
    assert await judge.allowed(peer_of(ALICE, address="::2"), [action]) == [False]


def broker_says(authorizer_class: str | None, *, has_answered: bool = True) -> ClusterView:
    settings = None if authorizer_class is None else {AUTHORIZER: authorizer_class}
    facts = BrokerFacts(broker_id=1, settings=settings, has_answered=has_answered)
    return ClusterView(
        is_active=True, brokers={1: Broker(1, epoch=1, endpoints=())}, broker_facts=(facts,)
    )


@pytest.mark.parametrize(
    ("view", "has_lists", "is_open"),
    [
        (broker_says(""), True, True),
        (broker_says(ACL_AUTHORIZER), True, False),
        (broker_says("com.example.Authorizer"), False, False),
        (broker_says(None), False, False),
        (broker_says(None, has_answered=False), True, False),
        (broker_says(None, has_answered=False), False, True),
    ],
    ids=["none", "acls", "foreign", "refuses to say", "acls in ZooKeeper", "new cluster"],
)
async def test_what_decides_is_detected(view: ClusterView, has_lists: bool, is_open: bool) -> None:
    zookeeper = AclZooKeeper()
    if has_lists:
        zookeeper.create_paths()
    judge = authorizer(zookeeper, AuthorizerKind.DETECT, view, super_users=frozenset({ADMIN}))
    assert await may(judge, AclOperation.CREATE, "t") is is_open
    assert await may(judge, AclOperation.CREATE, "t", principal=ADMIN)


@pytest.mark.parametrize(
    ("entries", "depends"),
    [
        ({}, False),
        ({ALICE: "*", "User:*": "*"}, False),
        ({ALICE: "10.0.0.1"}, True),
        ({"User:*": "10.9.9.9"}, True),
        ({"User:bob": "10.0.0.1"}, False),
    ],
)
async def test_right_depends_on_a_host_in_an_entry(
    acls: AclZooKeeper, entries: dict[str, str], depends: bool
) -> None:
    """Requests may not be passed on then: brokers would judge them by Regent's address."""
    for number, (principal, host) in enumerate(entries.items()):
        acls.allow("Read", f"Topic:t{number}", principal=principal, host=host)
    assert await authorizer(acls).depends_on_address(peer_of(ALICE)) is depends


async def test_without_an_authorizer_nothing_depends_on_the_address(acls: AclZooKeeper) -> None:
    """Entries of former times decide nothing."""
    acls.allow("Read", "Topic:t", principal="User:*", host="10.9.9.9")
    judge = authorizer(acls, AuthorizerKind.NONE)
    assert not await judge.depends_on_address(peer_of(ALICE))


async def test_cluster_action_is_granted_by_a_list_only(acls: AclZooKeeper) -> None:
    judge = authorizer(acls)
    assert not await judge.is_cluster_action_granted(peer_of(ALICE))
    acls.allow("ClusterAction", f"Cluster:{CLUSTER_NAME}")
    assert await judge.is_cluster_action_granted(peer_of(ALICE))
    open_to_all = authorizer(acls, AuthorizerKind.NONE)
    assert not await open_to_all.is_cluster_action_granted(peer_of(ALICE))


_SCRAM = {
    "upsertions": [],
    "deletions": [{"name": "bob", "mechanism": 1}],
}
_MOVE = [{"name": "t", "partitions": [{"partition_index": 0, "replicas": (1,)}]}]


@pytest.fixture
def secured(cluster: SimulatedCluster) -> Iterator[LocalEndpoint]:
    """An endpoint where only super users may do anything: there are no entries."""
    endpoint = LocalEndpoint(
        kind=AuthorizerKind.KAFKA_ACLS, rules=AclRules(super_users=frozenset({ADMIN}))
    )
    with LiveController(cluster, serve=endpoint.serve):
        yield endpoint


REFUSED: list[tuple[Api, int, Mapping[str, Any], Callable[[Any], Any], int]] = [
    (
        CREATE_TOPICS,
        7,
        {"topics": [new_topic("t")], "timeout": MINUTE},
        lambda a: a["topics"][0]["error_code"],
        29,
    ),
    (
        DELETE_TOPICS,
        6,
        {"topics": [{"name": "t", "topic_id": None}], "timeout": MINUTE},
        lambda a: a["responses"][0]["error_code"],
        29,
    ),
    (
        CREATE_PARTITIONS,
        3,
        {
            "topics": [{"name": "t", "count": 2, "assignments": None}],
            "timeout": MINUTE,
            "validate_only": False,
        },
        lambda a: a["results"][0]["error_code"],
        29,
    ),
    (
        ELECT_LEADERS,
        2,
        {"election_type": 0, "topic_partitions": None},
        lambda a: a["error_code"],
        31,
    ),
    (ALTER_PARTITION_REASSIGNMENTS, 0, {"topics": _MOVE}, lambda a: a["error_code"], 31),
    (LIST_PARTITION_REASSIGNMENTS, 0, {"topics": None}, lambda a: a["error_code"], 31),
    (ALTER_USER_SCRAM_CREDENTIALS, 0, _SCRAM, lambda a: a["results"][0]["error_code"], 31),
    (UPDATE_FEATURES, 1, {"feature_updates": []}, lambda a: a["error_code"], 31),
]


@pytest.mark.parametrize(
    ("api", "version", "fields", "error_of", "code"), REFUSED, ids=lambda each: str(each)[:20]
)
def test_who_may_not_is_refused_and_a_super_user_is_not(
    api: Api,
    version: int,
    fields: Mapping[str, Any],
    error_of: Callable[[Any], Any],
    code: int,
    cluster: SimulatedCluster,
    secured: LocalEndpoint,
) -> None:
    assert error_of(secured.ask(api, version, fields, peer=peer_of(ALICE))) == code
    assert cluster.topics == ()
    assert error_of(secured.ask(api, version, fields, peer=peer_of(ADMIN))) not in (29, 31)

"""What clients ask each node about itself, and what a controller may ask us by mistake."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest
from kio.schema.errors import ErrorCode

from regent.controller.view import ClusterView
from regent.endpoint.acl_cache import AclCache
from regent.endpoint.authorization import Authorizer, AuthorizerKind
from regent.endpoint.broker_trust import BrokerTrust, TrustedAsBrokers
from regent.endpoint.dispatcher import (
    HANDLERS,
    NODE_HANDLERS,
    EndpointDispatcher,
    served_apis,
)
from regent.endpoint.handling import Handler
from regent.endpoint.quotas import MutationQuotas
from regent.endpoint.upstream_brokers import UpstreamBrokers
from regent.model.acls import AclRules
from regent.model.cluster import Broker
from regent.model.topic_config import BrokerFacts
from regent.protocol.entity_building import build_entity
from regent.protocol.framing import RequestHeader
from regent.protocol.served_apis import (
    ALLOCATE_PRODUCER_IDS,
    ALTER_PARTITION,
    ALTER_REPLICA_LOG_DIRS,
    CONTROLLED_SHUTDOWN,
    DESCRIBE_CONFIGS,
    DESCRIBE_LOG_DIRS,
    INCREMENTAL_ALTER_CONFIGS,
    LEADER_AND_ISR,
    LIST_GROUPS,
    LIST_TRANSACTIONS,
    STOP_REPLICA,
    UPDATE_METADATA,
    Api,
    table_of,
)
from regent.protocol.server_codec import Request, ServerCodec
from regent.protocol.serving import READ, Admission, PassOn
from regent.runtime.queued_requests import QueuedRequests
from regent.runtime.topic_waits import TopicWaits
from regent.simulation.zookeeper import InMemoryZooKeeper
from tests.simulation.zookeeper_ports import InMemoryZooKeeperPort
from tests.support.endpoint import peer_of
from tests.support.event_loop import until_idle
from tests.support.served_requests import make
from tests.unit.runtime.worlds import KeptChannels

OWN = "1000000001"
VIEW = ClusterView(is_active=True, controller_id=int(OWN))
PEER = peer_of(address="10.0.0.1")
ALL = (*HANDLERS, *NODE_HANDLERS)
CODEC = ServerCodec(table_of(served_apis(ALL)))


def dispatcher(view: ClusterView = VIEW, *, trusts: str = "everybody") -> EndpointDispatcher:
    trust = BrokerTrust(trusted=TrustedAsBrokers(trusts), super_users=(), view=lambda: view)
    zookeeper = InMemoryZooKeeperPort(InMemoryZooKeeper().connect())
    authorizer = Authorizer(
        kind=AuthorizerKind.NONE,
        rules=AclRules(),
        cache=AclCache(zookeeper),
        view=lambda: view,
    )
    waits = TopicWaits(lambda: view, KeptChannels())
    requests = QueuedRequests(lambda event: None, lambda: view, waits)
    return EndpointDispatcher(requests, trust, authorizer, MutationQuotas(zookeeper), ALL)


BROKERS_ASK = (
    ALLOCATE_PRODUCER_IDS,
    ALTER_PARTITION,
    CONTROLLED_SHUTDOWN,
    LEADER_AND_ISR,
    STOP_REPLICA,
    UPDATE_METADATA,
)


@pytest.mark.parametrize(
    ("api", "version"), [(api, version) for api in BROKERS_ASK for version in api.requests]
)
async def test_what_brokers_ask_is_refused_to_others_unread(api: Api, version: int) -> None:
    header = RequestHeader(api.key, version, 1, None)
    refused = await dispatcher(trusts="nobody").admit(header, PEER)
    assert not refused.is_broker
    answered: Any = refused.answer
    assert CODEC.encode(header, answered)
    assert answered.error_code is ErrorCode.cluster_authorization_failed
    assert await dispatcher().admit(header, PEER) == Admission(is_broker=True)


@pytest.mark.parametrize(
    ("key", "version"), [(LIST_GROUPS.key, 0), (ALTER_PARTITION.key, 99), (12_345, 0)]
)
async def test_everything_else_is_read(key: int, version: int) -> None:
    header = RequestHeader(key, version, 1, None)
    assert await dispatcher(trusts="nobody").admit(header, PEER) == READ


async def test_who_was_judged_to_be_a_broker_is_not_judged_again() -> None:
    asked = request(CONTROLLED_SHUTDOWN, 0, {"brokerId": 1})
    judged = msgspec.structs.replace(PEER, is_broker=True)
    refused: Any = await dispatcher(trusts="nobody")(asked, PEER)
    assert refused.error_code is ErrorCode.cluster_authorization_failed
    waiting = asyncio.ensure_future(dispatcher(trusts="nobody")(asked, judged))
    await until_idle()
    assert not waiting.done()  # the controller was asked, which answers nothing here
    waiting.cancel()


def request(api: Api, version: int, fields: dict[str, Any]) -> Request:
    return Request(RequestHeader(api.key, version, 1, "test"), make(api.requests[version], fields))


async def answer(api: Api, version: int, fields: dict[str, Any], **options: Any) -> Any:
    asked = request(api, version, fields)
    found = await dispatcher(**options)(asked, PEER)
    if not isinstance(found, PassOn):
        assert CODEC.encode(asked.header, found)  # it fits, and can be read back
    return found


@pytest.mark.parametrize("version", LIST_GROUPS.requests)
async def test_the_controller_coordinates_no_group(version: int) -> None:
    filters: dict[str, Any] = {"statesFilter": []} if version >= 4 else {}
    found = await answer(LIST_GROUPS, version, filters)
    assert (found.error_code, found.groups) == (ErrorCode.none, ())


@pytest.mark.parametrize("version", LIST_TRANSACTIONS.requests)
async def test_the_controller_coordinates_no_transaction(version: int) -> None:
    fields: dict[str, Any] = {"stateFilters": [], "producerIdFilters": []}
    found = await answer(LIST_TRANSACTIONS, version, fields)
    assert (found.error_code, found.transaction_states) == (ErrorCode.none, ())


@pytest.mark.parametrize("version", DESCRIBE_LOG_DIRS.requests)
async def test_the_controller_has_a_directory_without_replicas(version: int) -> None:
    """None at all would be read as CLUSTER_AUTHORIZATION_FAILED."""
    found = await answer(DESCRIBE_LOG_DIRS, version, {"topics": None})
    (directory,) = found.results
    assert (directory.error_code, directory.topics) == (ErrorCode.none, ())


@pytest.mark.parametrize("version", ALTER_REPLICA_LOG_DIRS.requests)
async def test_the_controller_moves_no_replica(version: int) -> None:
    topics = [{"name": "t", "partitions": [0, 1]}]
    found = await answer(
        ALTER_REPLICA_LOG_DIRS, version, {"dirs": [{"path": "/data", "topics": topics}]}
    )
    (topic,) = found.results
    codes = {each.partition_index: each.error_code for each in topic.partitions}
    assert codes == {0: ErrorCode.log_dir_not_found, 1: ErrorCode.log_dir_not_found}


def resources(version: int, *names: tuple[int, str]) -> dict[str, Any]:
    found = [
        {"resourceType": kind, "resourceName": name, "configurationKeys": None}
        for kind, name in names
    ]
    fields: dict[str, Any] = {"resources": found}
    if version >= 1:
        fields["includeSynonyms"] = False
    if version >= 3:
        fields["includeDocumentation"] = False
    return fields


BROKER, LOGGER, TOPIC = 4, 8, 2


@pytest.mark.parametrize("version", DESCRIBE_CONFIGS.requests)
@pytest.mark.parametrize("kind", [BROKER, LOGGER])
async def test_the_controllers_own_settings_are_none(version: int, kind: int) -> None:
    found = await answer(DESCRIBE_CONFIGS, version, resources(version, (kind, OWN)))
    (result,) = found.results
    assert (result.error_code, result.resource_type, result.resource_name, result.configs) == (
        ErrorCode.none,
        kind,
        OWN,
        (),
    )


@pytest.mark.parametrize(
    "names", [[(TOPIC, OWN)], [(BROKER, "1")], [(BROKER, ""), (TOPIC, "t")], []]
)
async def test_settings_of_others_are_a_brokers_to_describe(names: list[tuple[int, str]]) -> None:
    assert await answer(DESCRIBE_CONFIGS, 4, resources(4, *names)) == PassOn()


@pytest.mark.parametrize("version", DESCRIBE_CONFIGS.requests)
async def test_of_a_mixed_request_a_broker_answers_what_is_not_ours(version: int) -> None:
    fields = resources(version, (TOPIC, "t"), (BROKER, OWN), (BROKER, "2"))
    step = await answer(DESCRIBE_CONFIGS, version, fields)
    asked = request(DESCRIBE_CONFIGS, version, fields)
    left = CODEC.decode(CODEC.encode_request(asked.header, step.request))
    assert [each.resource_name for each in left.entity.resources] == ["t", "2"]
    of_broker = [
        {
            "errorCode": 0,
            "errorMessage": None,
            "resourceType": each.resource_type,
            "resourceName": each.resource_name,
            "configs": [],
        }
        for each in left.entity.resources
    ]
    kind = DESCRIBE_CONFIGS.responses[version]
    merged = step.merged(make(kind, {"throttleTimeMs": 7, "results": of_broker}))
    assert [each.resource_name for each in merged.results] == ["t", "2", OWN]
    assert CODEC.encode(asked.header, merged)


async def test_a_standby_has_no_settings_of_its_own() -> None:
    """Its id is nobody's node."""
    view = ClusterView(is_active=False, controller_id=int(OWN))
    assert await answer(DESCRIBE_CONFIGS, 4, resources(4, (BROKER, OWN)), view=view) == PassOn()


@pytest.mark.parametrize("version", INCREMENTAL_ALTER_CONFIGS.requests)
async def test_the_controllers_settings_are_not_changed_by_requests(version: int) -> None:
    config = {"name": "log.cleaner.threads", "configOperation": 0, "value": "2"}
    resource = {"resourceType": BROKER, "resourceName": OWN, "configs": [config]}
    fields = {"resources": [resource], "validateOnly": False}
    found = await answer(INCREMENTAL_ALTER_CONFIGS, version, fields)
    (result,) = found.responses
    assert result.error_code is ErrorCode.invalid_request
    assert "Regent" in result.error_message


@pytest.mark.parametrize("version", INCREMENTAL_ALTER_CONFIGS.requests)
async def test_what_is_not_set_can_be_deleted(version: int) -> None:
    """kafka-reassign-partitions removes throttles from every node that it sees."""
    config = {"name": "leader.replication.throttled.rate", "configOperation": 1, "value": None}
    resource = {"resourceType": BROKER, "resourceName": OWN, "configs": [config]}
    fields = {"resources": [resource], "validateOnly": False}
    found = await answer(INCREMENTAL_ALTER_CONFIGS, version, fields)
    (result,) = found.responses
    assert result.error_code is ErrorCode.none
    config["configOperation"] = 0
    resource["configs"].append({"name": "a", "configOperation": 1, "value": None})  # type: ignore[attr-defined]
    found = await answer(INCREMENTAL_ALTER_CONFIGS, version, fields)
    assert found.responses[0].error_code is ErrorCode.invalid_request


def stop_replica(version: int) -> dict[str, Any]:
    fields: dict[str, Any] = {"controllerId": 1, "controllerEpoch": 5}
    if version >= 1:
        fields["brokerEpoch"] = 9
    if version >= 3:
        states = [{"partitionIndex": 2, "leaderEpoch": 1, "deletePartition": True}]
        return fields | {"topicStates": [{"topicName": "t", "partitionStates": states}]}
    fields["deletePartitions"] = True
    if version >= 1:
        return fields | {"topics": [{"name": "t", "partitionIndexes": [2]}]}
    return fields | {"ungroupedPartitions": [{"topicName": "t", "partitionIndex": 2}]}


@pytest.mark.parametrize("version", STOP_REPLICA.requests)
async def test_another_controller_reads_that_our_replica_is_gone(version: int) -> None:
    """Or it would wait for it, and the topic would never be deleted."""
    found = await answer(STOP_REPLICA, version, stop_replica(version))
    (partition,) = found.partition_errors
    assert (partition.topic_name, partition.partition_index) == ("t", 2)
    assert found.error_code is partition.error_code is ErrorCode.none


def leader_and_isr(version: int) -> dict[str, Any]:
    state = {
        "partitionIndex": 2,
        "controllerEpoch": 5,
        "leader": 1,
        "leaderEpoch": 0,
        "isr": [1],
        "partitionEpoch": 0,
        "replicas": [1],
    }
    fields: dict[str, Any] = {"controllerId": 1, "controllerEpoch": 5, "liveLeaders": []}
    if version >= 5:
        fields["type_"] = 0
    if version < 2:
        return fields | {"ungroupedPartitionStates": [{"topicName": "t", **state}]}
    topic: dict[str, Any] = {"topicName": "t", "partitionStates": [state]}
    if version >= 5:
        topic["topicId"] = "12345678-1234-5678-1234-567812345678"
    return fields | {"topicStates": [topic]}


@pytest.mark.parametrize("version", LEADER_AND_ISR.requests)
async def test_another_controller_reads_that_we_follow(version: int) -> None:
    found = await answer(LEADER_AND_ISR, version, leader_and_isr(version))
    (partition,) = found.topics[0].partition_errors if version >= 5 else found.partition_errors
    assert partition.partition_index == 2
    assert found.error_code is partition.error_code is ErrorCode.none


@pytest.mark.parametrize("version", UPDATE_METADATA.requests)
async def test_another_controllers_metadata_is_taken(version: int) -> None:
    states = "ungroupedPartitionStates" if version <= 4 else "topicStates"
    fields = {"controllerId": 1, "controllerEpoch": 5, states: [], "liveBrokers": []}
    assert (await answer(UPDATE_METADATA, version, fields)).error_code is ErrorCode.none


@pytest.mark.parametrize(
    ("api", "fields"),
    [(LEADER_AND_ISR, leader_and_isr(7)), (STOP_REPLICA, stop_replica(4))],
    ids=["LeaderAndIsr", "StopReplica"],
)
async def test_only_brokers_are_answered_like_that(api: Api, fields: dict[str, Any]) -> None:
    found = await answer(api, api.highest, fields, trusts="nobody")
    assert found.error_code is ErrorCode.cluster_authorization_failed


@pytest.mark.parametrize(
    ("view", "error"),
    [
        (
            ClusterView(is_active=True, brokers={1: Broker(1, epoch=5, endpoints=())}),
            ErrorCode.cluster_authorization_failed,
        ),
        (ClusterView(is_active=True), ErrorCode.not_controller),
        (ClusterView(), ErrorCode.not_controller),
    ],
    ids=["active", "about to become active", "standby"],
)
@pytest.mark.parametrize(
    ("api", "fields"),
    [
        (CONTROLLED_SHUTDOWN, {"broker_id": 1, "broker_epoch": 5}),
        (ALTER_PARTITION, {"broker_id": 1, "broker_epoch": 5, "topics": ()}),
        (ALLOCATE_PRODUCER_IDS, {"broker_id": 1, "broker_epoch": 5}),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
async def test_who_is_not_the_controller_sends_brokers_elsewhere(
    api: Api, fields: dict[str, Any], view: ClusterView, error: ErrorCode
) -> None:
    """It knows no brokers. One that is told to have no right would ask here for ever."""
    asked = Request(
        RequestHeader(api.key, api.highest, 1, "test"),
        build_entity(api.requests[api.highest], fields),
    )
    found: Any = await dispatcher(view, trusts="registered-brokers")(asked, PEER)
    assert found.error_code is error


@pytest.mark.parametrize(
    "handler",
    [handler for handler in ALL if isinstance(handler, Handler)],
    ids=lambda handler: handler.api.name,
)
def test_every_refusal_can_be_encoded(handler: Handler) -> None:
    for version, kind in handler.api.requests.items():
        header = RequestHeader(handler.api.key, version, 1, "test")
        bare = object.__new__(kind)
        for name in {"dirs", "resources"} & kind.__dataclass_fields__.keys():
            object.__setattr__(bare, name, ())
        assert CODEC.encode(header, handler.refusal(Request(header, bare), 31))


def test_requests_are_passed_to_live_brokers_that_have_answered() -> None:
    brokers = {number: Broker(number, 7, ()) for number in (1, 2, 3)}
    facts = (
        BrokerFacts(broker_id=1, has_answered=True, api_versions={3: (0, 12)}),
        BrokerFacts(broker_id=2),
        BrokerFacts(broker_id=3, has_answered=True, api_versions={3: (0, 5)}),
        BrokerFacts(broker_id=4, has_answered=True, api_versions={3: (0, 1)}),
    )
    view = ClusterView(is_active=True, brokers=brokers, broker_facts=facts, shutting_down=(3,))
    found = UpstreamBrokers(lambda: view)()
    assert [(each.broker.broker_id, each.versions[3], each.is_stopping) for each in found] == [
        (1, (0, 12), False),
        (3, (0, 5), True),
    ]


def test_each_view_has_brokers_of_its_own() -> None:
    facts = BrokerFacts(broker_id=1, has_answered=True, api_versions={3: (0, 12)})
    views = [
        ClusterView(is_active=True, brokers={1: Broker(1, 7, ())}, broker_facts=(facts,)),
        ClusterView(),
    ]
    brokers = UpstreamBrokers(lambda: views[0])
    assert len(brokers()) == 1
    views.pop(0)
    assert brokers() == []

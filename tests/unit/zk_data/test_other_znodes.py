from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regent.model.active_regent import ActiveRegent, RegentEndpoint, ServedResources
from regent.model.cluster import Address
from regent.model.partition import TopicPartition
from regent.simulation.broker_znodes import encode_cluster_id
from regent.zk_data import cluster, config, controller, features, notifications
from regent.zk_data.features import FeatureStatus, FeatureZNode
from regent.zk_data.preferred_replica_election import decode_preferred_replica_election
from tests.support.broker_znodes import (
    encode_log_dir_event,
    encode_preferred_replica_election,
)

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
NODE = "/node"


def test_controller() -> None:
    assert controller.decode_controller(b'{"version":1,"brokerid":3,"timestamp":"1500"}') == 3
    assert controller.decode_controller(b'{"brokerid":3}') == 3
    assert controller.encode_controller(1_000_000_001, 1500) == (
        b'{"version":2,"brokerid":1000000001,"timestamp":"1500","kraftControllerEpoch":-1}'
    )
    ours = controller.encode_controller(1_000_000_001, 1500, election_path="/a")
    assert controller.decode_controller(ours) == 1_000_000_001
    assert controller.decode_election_path(ours) == "/a"
    assert controller.decode_election_path(b'{"brokerid":3}') is None
    assert controller.decode_election_path(b"?") is None


_SERVED = ServedResources("kafka/regent", ("shop", "web"), "east", is_default=True)


@pytest.mark.parametrize(
    "served",
    [None, ServedResources(None), ServedResources("kafka/regent"), _SERVED],
)
def test_a_regent_says_which_resources_it_serves(served: ServedResources | None) -> None:
    data = controller.encode_controller(7, 0, election_path="/a", resources=served)
    assert controller.decode_active_regent(data) == ActiveRegent(7, served)
    assert controller.decode_controller(data) == 7
    assert controller.decode_election_path(data) == "/a"


def test_a_regent_says_where_it_is_reached() -> None:
    endpoint = RegentEndpoint(
        {"SASL_SSL": Address("regent", 9095)}, {"EXTERNAL": Address("::1", 9096)}
    )
    data = controller.encode_controller(7, 0, election_path="/a", endpoint=endpoint)
    assert controller.decode_active_regent(data) == ActiveRegent(7, endpoint=endpoint)
    other = data.replace(b"9095", b'"9095"')
    assert controller.decode_active_regent(other) == ActiveRegent(7)


@pytest.mark.parametrize(
    "said",
    [b"3", b"{}", b'{"lease":7}', b'{"lease":"a/b","namespaces":"all"}'],
)
def test_a_regent_of_another_version_is_one_all_the_same(said: bytes) -> None:
    data = b'{"brokerid":7,"electionPath":"/a","customResources":' + said + b',"more":1}'
    assert controller.decode_active_regent(data) == ActiveRegent(7)
    assert controller.decode_controller(data) == 7
    later = b'{"lease":"a/b","namespaces":["shop"],"more":1}'
    data = b'{"brokerid":7,"electionPath":"/a","customResources":' + later + b"}"
    known = ServedResources("a/b", ("shop",))
    assert controller.decode_active_regent(data) == ActiveRegent(7, known)


@pytest.mark.parametrize("data", [b"?", b"{}", b'{"brokerid":3}', b'{"electionPath":"/a"}'])
def test_a_broker_is_no_regent(data: bytes) -> None:
    assert controller.decode_active_regent(data) is None


@given(st.integers(0, 2**31 - 2))
def test_controller_epoch_round_trip(epoch: int) -> None:
    data = controller.encode_controller_epoch(epoch)
    assert controller.decode_controller_epoch(data) == epoch


def test_cluster_id() -> None:
    data = b'{"version":"1","id":"7AgOyGVbSTSbUO0JmqT8TA"}'
    assert cluster.decode_cluster_id(data) == "7AgOyGVbSTSbUO0JmqT8TA"
    assert encode_cluster_id("7AgOyGVbSTSbUO0JmqT8TA") == data


@given(st.dictionaries(st.text(max_size=9), st.text(max_size=9), max_size=4))
def test_entity_config_round_trip(overrides: dict[str, str]) -> None:
    data = config.encode_entity_config(overrides)
    assert config.decode_entity_config(NODE, data) == overrides


def test_entity_config() -> None:
    assert config.decode_entity_config(NODE, b'{"version":1,"config":{"a":"b"}}') == {"a": "b"}
    assert config.decode_entity_config(NODE, b"") == {}
    assert config.decode_entity_config(NODE, b"{}") == {}
    assert config.encode_entity_config({"a": "b"}) == b'{"version":1,"config":{"a":"b"}}'


@pytest.mark.parametrize(
    ("data", "entity_type", "entity_name"),
    [
        (b'{"version":1,"entity_type":"topics","entity_name":"t"}', "topics", "t"),
        (b'{"version":2,"entity_path":"topics/t"}', "topics", "t"),
        (b'{"version":2,"entity_path":"brokers/<default>"}', "brokers", "<default>"),
        (b'{"version":2,"entity_path":"users/u/clients/c"}', "users", "u/clients/c"),
    ],
)
def test_config_change(data: bytes, entity_type: str, entity_name: str) -> None:
    entity = config.decode_config_change(NODE, data)
    assert entity == (entity_type, entity_name)
    assert config.decode_config_change(NODE, config.encode_config_change(entity.entity_path)) == (
        entity
    )


def test_isr_change_notification() -> None:
    data = b'{"version":1,"partitions":[{"topic":"t","partition":0},{"topic":"t","partition":0}]}'
    assert notifications.decode_isr_change_notification(NODE, data) == (T0,)


def test_log_dir_event() -> None:
    data = b'{"version":1,"broker":3,"event":1}'
    assert notifications.decode_log_dir_event(NODE, data) == 3
    assert encode_log_dir_event(3) == data


@pytest.mark.parametrize(
    ("data", "feature"),
    [
        (b'{"features":{},"version":1,"status":1}', FeatureZNode(1, FeatureStatus.ENABLED)),
        (b'{"features":{},"version":2,"status":0}', FeatureZNode(2, FeatureStatus.DISABLED)),
        (
            b'{"features":{"f":{"min_version_level":1,"max_version_level":3}},"version":1,"status":1}',
            FeatureZNode(1, FeatureStatus.ENABLED, {"f": 3}),
        ),
        (
            b'{"features":{"f":{"max_version_level":3}},"version":2,"status":1}',
            FeatureZNode(2, FeatureStatus.ENABLED, {"f": 3}),
        ),
    ],
)
def test_feature(data: bytes, feature: FeatureZNode) -> None:
    assert features.decode_feature(data) == feature
    assert features.encode_feature(feature) == data


def test_preferred_replica_election() -> None:
    data = b'{"version":1,"partitions":[{"topic":"t","partition":0},{"topic":"t","partition":1}]}'
    assert decode_preferred_replica_election(NODE, data) == (T0, T1)
    assert encode_preferred_replica_election([T0, T1]) == data
    assert decode_preferred_replica_election(NODE, data.replace(b"1}]", b"0}]")) == (T0,)

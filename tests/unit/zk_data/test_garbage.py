"""Whatever bytes a znode has, a decoder answers with a value or with ``MalformedZNodeError``."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from regent.model.errors import MalformedZNodeError
from regent.zk_data import (
    broker_notes,
    brokers,
    cluster,
    config,
    controller,
    delegation_tokens,
    features,
    notifications,
    overtaken_answers,
    preferred_replica_election,
    reassign_partitions,
    replicas,
    throttles,
    topic_ids,
    topics,
)
from regent.zk_data.operations import ZNode
from tests.support.examples import scaled_examples

DECODERS: dict[str, Callable[[bytes], object]] = {
    "broker": lambda data: brokers.decode_broker(1, ZNode(data, 0, 1, 1)),
    "broker note": lambda data: broker_notes.decode_broker_note("/n", data),
    "cluster id": cluster.decode_cluster_id,
    "config": lambda data: config.decode_entity_config("/n", data),
    "config change": lambda data: config.decode_config_change("/n", data),
    "controller": controller.decode_controller,
    "active Regent": controller.decode_active_regent,
    "controller epoch": controller.decode_controller_epoch,
    "feature": features.decode_feature,
    "isr change": lambda data: notifications.decode_isr_change_notification("/n", data),
    "log dir event": lambda data: notifications.decode_log_dir_event("/n", data),
    "overtaken answer": lambda data: overtaken_answers.decode_overtaken_answer("/n", data),
    "begun terms": overtaken_answers.decode_begun_terms,
    "presence": lambda data: replicas.decode_presence("/n", data),
    "topic throttle": lambda data: throttles.decode_topic_throttle("/n", data),
    "broker throttle": lambda data: throttles.decode_broker_throttle("/n", data),
    "delegation token": lambda data: delegation_tokens.decode_delegation_token("/n", data),
    "preferred replica election": lambda data: (
        preferred_replica_election.decode_preferred_replica_election("/n", data)
    ),
    "partition state": lambda data: topics.decode_partition_state("/n", ZNode(data, 0, 1, 1)),
    "reassignment": reassign_partitions.decode_reassign_partitions,
    "topic": lambda data: topics.decode_topic("t", data),
    "topic id": lambda data: topic_ids.decode_topic_id("/n", data),
}

PATHS = {
    "controller": "/controller",
    "controller epoch": "/controller_epoch",
    "cluster id": "/cluster/id",
    "feature": "/feature",
    "begun terms": overtaken_answers.OVERTAKEN_ANSWERS,
    "reassignment": "/admin/reassign_partitions",
}
"""Paths that decoders know without being told."""

MALFORMED = {
    "controller": [b"3", b"{}", b'{"brokerid":"3"}', b""],
    "controller epoch": [
        *(b"", b" 1", b"1 ", b"1_0", b"-1", b"2147483647", b"0x1", b"\xff", b"9" * 5000),
        "²".encode(),
    ],
    "cluster id": [b'{"version":"1"}'],
    "config": [b"x", b"[]", b'{"config":{"a":1}}', b'{"config":["a"]}'],
    "config change": [
        b"",
        b"{}",
        b'{"version":3,"entity_path":"topics/t"}',
        b'{"version":2}',
        b'{"version":2,"entity_path":"topics"}',
        b'{"version":2,"entity_path":"topics/"}',
        b'{"version":1,"entity_type":"topics"}',
        b'{"version":"2","entity_path":"topics/t"}',
    ],
    "isr change": [b'{"partitions":[1]}'],
    "log dir event": [b"", b"{}", b'{"broker":-1}', b'{"broker":"3"}'],
    "feature": [
        b"",
        b"{}",
        b'{"version":1}',
        b'{"version":3,"status":1}',
        b'{"version":1,"status":2}',
        b'{"version":1,"status":1,"features":{"f":{}}}',
        b'{"version":1,"status":1,"features":{"f":3}}',
    ],
    "preferred replica election": [b"", b"{}", b"[]", b'{"partitions":[{"topic":"t"}]}', b"\xff"],
    "reassignment": [b"", b"{", b"[]", b'{"version":1}', b'{"partitions":{}}'],
    "topic id": [b"", b"{}", b'{"topic_id":1}', b'{"topic_id":"?"}'],
    "overtaken answer": [b"", b"?", b"{}", b'{"leaderEpoch":-1}', b'{"leaderEpoch":"1"}'],
    "begun terms": [b'{"version":1,"terms":[-1]}'],
    "presence": [
        b"",
        b"{}",
        b"[]",
        b'{"instance":"a","controllerId":1,"host":"h","port":0}',
        b'{"instance":"a","controllerId":1,"host":"h","port":65536}',
        b'{"instance":"","controllerId":1,"host":"h","port":1}',
        b'{"instance":"a","controllerId":1,"host":"","port":1}',
    ],
    "topic throttle": [
        b"",
        b"{",
        b"[]",
        b'{"version":1}',
        b'{"czxid":0,"partitions":{"x":{}},"leader_replicas":[],"follower_replicas":[]}',
        b'{"czxid":0,"partitions":{"0":{"rate":0,"leaders":[],"followers":[]}},'
        b'"leader_replicas":[],"follower_replicas":[]}',
    ],
    "broker throttle": [b"", b"7", b'{"leader_rate":"fast"}', b'{"leader_rate":0}'],
}

FIELDS = [
    *("adding_replicas", "broker", "brokerEpoch", "brokerid", "config", "controller_epoch"),
    *("endpoints", "entity_name", "entity_path", "entity_type", "features", "host", "id"),
    *("isr", "jmx_port", "leader", "leaderEpoch", "leader_epoch", "leader_recovery_state"),
    *("listener_security_protocol_map", "partition", "partitions", "port", "rack"),
    *("removing_replicas", "replicas", "status", "topic", "topic_id", "version", "0"),
    *("min_version", "terms", "electionPath", "customResources", "lease", "namespaces"),
    *("clusterName", "isDefault"),
]

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.sampled_from([0, 1, 2, 3, -1, 2**31, 10**40])
    | st.floats()
    | st.text(max_size=5)
    | st.sampled_from(["PLAINTEXT://h:1", "0", "1", "\ud800"])
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(FIELDS), inner, max_size=4)
    ),
    max_leaves=12,
)
OBJECTS = st.dictionaries(st.sampled_from(FIELDS), VALUES, max_size=9)


def malformed(decode: Callable[[bytes], object], data: bytes) -> MalformedZNodeError | None:
    """The error with which the bytes are refused, or None; anything else is raised."""
    try:
        decode(data)
    except MalformedZNodeError as error:
        return error
    return None


@pytest.mark.parametrize(
    ("name", "data"), [(name, data) for name, many in MALFORMED.items() for data in many]
)
def test_malformed_znode_names_its_path(name: str, data: bytes) -> None:
    error = malformed(DECODERS[name], data)
    assert error is not None
    assert error.path == PATHS.get(name, "/n")
    assert error.reason


def survive(data: bytes) -> None:
    """Anything but a value or the error that tells its path is raised."""
    for decode in DECODERS.values():
        error = malformed(decode, data)
        assert error is None or (error.path.startswith("/") and error.reason)


@scaled_examples(4)
@given(data=st.binary(max_size=40))
@example(data=b"[" * 100_000)
@example(data=b'{"a":' * 100_000)
@example(data=b'{"version":1,"x":"\xff"}')
@example(data=b'{"\xff":1}')
@example(data=b'{"id":"\xff","config":{"\xff":"\xff"},"partitions":{"\xff":[1]}}')
@example(data=b"9" * 100_000)
@example(data=b"1e999")
def test_bytes(data: bytes) -> None:
    survive(data)


@scaled_examples(4)
@given(value=OBJECTS)
def test_json_of_wrong_shapes(value: dict[str, object]) -> None:
    survive(json.dumps(value).encode())

"""Whatever bytes a znode has, a decoder answers with a value or with ``MalformedZNodeError``."""

from __future__ import annotations

import json
from collections.abc import Callable

from hypothesis import example, given
from hypothesis import strategies as st

from regent.model.errors import MalformedZNodeError
from regent.zk_data import (
    broker_notes,
    brokers,
    cluster,
    config,
    controller,
    features,
    notifications,
    overtaken_answers,
    preferred_replica_election,
    reassign_partitions,
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
    "preferred replica election": lambda data: (
        preferred_replica_election.decode_preferred_replica_election("/n", data)
    ),
    "partition state": lambda data: topics.decode_partition_state("/n", ZNode(data, 0, 1, 1)),
    "reassignment": reassign_partitions.decode_reassign_partitions,
    "topic": lambda data: topics.decode_topic("t", data),
    "topic id": lambda data: topic_ids.decode_topic_id("/n", data),
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

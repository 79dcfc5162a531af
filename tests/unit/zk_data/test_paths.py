from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regent.model.partition import TopicPartition
from regent.zk_data import paths

TOPIC_NAMES = st.from_regex(r"[a-zA-Z0-9._-]{1,40}", fullmatch=True)
PARTITIONS = st.integers(0, 2**31 - 1)


@given(TOPIC_NAMES, PARTITIONS)
def test_a_state_path_leads_back_to_its_partition(topic: str, partition: int) -> None:
    tp = TopicPartition(topic, partition)
    assert paths.partition_of_state(paths.partition_state(tp)) == tp
    assert paths.topic_of(paths.partition_state(tp)) == topic
    assert paths.partition_state(tp) == paths.topic_partition(tp) + "/state"
    assert paths.partition_states([tp]) == [paths.partition_state(tp)]
    assert paths.topic_partition(tp) == f"{paths.topic_partitions(topic)}/{partition}"
    assert paths.topic_of(paths.topic(topic)) == topic


@pytest.mark.parametrize(
    "path",
    [
        "",
        "/",
        "/brokers/topics",
        "/brokers/topics/t",
        "/brokers/topics/t/partitions/0",
        "/brokers/topics/t/partitions/x/state",
        "/brokers/topics/t/partitions//state",
        "/brokers/topics//partitions/0/state",
        "/brokers/topics/t/partitions/-1/state",
        "/brokers/topics/t/partitions/²/state",
        "/brokers/topics/t/partitions/99999999999/state",
        "/config/topics/t",
    ],
)
def test_other_paths_are_no_states(path: str) -> None:
    assert paths.partition_of_state(path) is None


@pytest.mark.parametrize("path", ["", "/brokers/topics", "/brokers/topics/", "/config/topics/t"])
def test_paths_outside_topics_have_no_topic(path: str) -> None:
    assert paths.topic_of(path) is None


@given(PARTITIONS)
def test_a_registration_leads_back_to_its_broker(broker: int) -> None:
    assert paths.broker_of(paths.broker_id(broker)) == broker


@pytest.mark.parametrize("child", ["", "-1", "x", "1x", "2147483648", "99999999999", "²"])
def test_other_children_of_broker_ids_are_no_brokers(child: str) -> None:
    assert paths.broker_id_of(child) is None
    assert paths.broker_of(f"/brokers/ids/{child}") is None
    assert paths.broker_of(f"/brokers/topics/{child}") is None


def test_config_paths() -> None:
    assert paths.broker_config() == "/config/brokers/<default>"
    assert paths.broker_config(3) == "/config/brokers/3"
    assert paths.topic_config("t") == "/config/topics/t"
    assert paths.delete_topic("t") == "/admin/delete_topics/t"


def test_parents_come_before_their_children() -> None:
    created = {"/"}
    for path in paths.PERSISTENT_PATHS:
        assert (path.rpartition("/")[0] or "/") in created
        created.add(path)
    assert len(created) == len(paths.PERSISTENT_PATHS) + 1


@given(st.lists(st.tuples(TOPIC_NAMES, st.integers(0, 3))))
def test_paths_of_many_states_are_those_of_each(partitions: list[tuple[str, int]]) -> None:
    named = [TopicPartition(*each) for each in partitions]
    assert paths.partition_states(named) == list(map(paths.partition_state, named))

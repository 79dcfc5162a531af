"""What depends on the brokers' protocol version, at a failover and when it changes later."""

from __future__ import annotations

import uuid

import pytest

from regent.controller.state.states import ReplicaState
from regent.controller.term.failover import process_inter_broker_protocol_change
from regent.model.partition import ReplicaAssignment
from regent.zk_data import paths
from regent.zk_data.features import (
    FeatureStatus,
    FeatureZNode,
    decode_feature,
    encode_feature,
)
from tests.unit.controller.world import T0, World


def cluster(*broker_ids: int, protocol: tuple[int, int]) -> World:
    world = World()
    world.driver.inter_broker_protocol = protocol
    world.start_broker(*broker_ids)
    return world


class TestTopicIds:
    @pytest.mark.parametrize("protocol", [(2, 8), (3, 9)])
    def test_topics_without_an_id_get_one(self, protocol: tuple[int, int]) -> None:
        world = cluster(1, protocol=protocol)
        world.create_topic("old", {0: (1,)})
        world.create_topic("new", {0: (1,)}, topic_id=uuid.UUID(int=77))
        context = world.fail_over().context
        assert context.cluster.topic_ids == {"new": uuid.UUID(int=77), "old": uuid.UUID(int=2)}
        assert world.topic("old").topic_id == uuid.UUID(int=2)
        assert world.topic("old").assignments == {0: ReplicaAssignment((1,))}

    def test_when_the_brokers_are_upgraded_the_ids_are_given_and_announced(self) -> None:
        world = cluster(1, 2, protocol=(2, 7))
        world.create_topic("t", {0: (1, 2)})
        active = world.fail_over()
        world.driver.take_sent()
        active.context.set_replica_state(2, T0, ReplicaState.OFFLINE)
        world.run(process_inter_broker_protocol_change(active, (2, 8)))
        (requests,) = world.driver.sent
        assert requests.topic_ids == {"t": uuid.UUID(int=2)}
        assert requests.leader_and_isr == {1: {T0: False}}
        assert world.driver.views[-1] == frozenset({"t"})
        world.driver.take_sent()
        world.run(process_inter_broker_protocol_change(active, (3, 0)))
        assert world.driver.sent == []


class TestFeatures:
    @pytest.mark.parametrize(
        ("protocol", "version", "status"),
        [
            ((2, 6), 1, FeatureStatus.DISABLED),
            ((2, 7), 1, FeatureStatus.ENABLED),
            ((3, 2), 1, FeatureStatus.ENABLED),
            ((3, 3), 2, FeatureStatus.ENABLED),
        ],
    )
    @pytest.mark.parametrize("before", [None, FeatureStatus.DISABLED, FeatureStatus.ENABLED])
    def test_the_protocol_decides_whether_features_are_finalized(
        self,
        protocol: tuple[int, int],
        version: int,
        status: FeatureStatus,
        before: FeatureStatus | None,
    ) -> None:
        world = cluster(protocol=protocol)
        if before is not None:
            world.put(paths.FEATURE, encode_feature(FeatureZNode(1, before)))
        world.fail_over()
        node = world.node(paths.FEATURE)
        feature = decode_feature(node.data)
        assert feature.status is status
        assert feature.version == version
        assert node.version == int(before is not None and (before, 1) != (status, version))

    @pytest.mark.parametrize(("before", "after"), [((2, 8), (3, 9)), ((3, 9), (2, 8))])
    def test_a_change_of_the_protocol_changes_the_layout_and_keeps_what_is_finalized(
        self, before: tuple[int, int], after: tuple[int, int]
    ) -> None:
        layouts = {(2, 8): 1, (3, 9): 2}
        world = cluster(protocol=before)
        znode = FeatureZNode(layouts[before], FeatureStatus.ENABLED, {"some.feature": 3})
        world.put(paths.FEATURE, encode_feature(znode))
        active = world.fail_over()
        world.run(process_inter_broker_protocol_change(active, after))
        node = world.node(paths.FEATURE)
        assert decode_feature(node.data) == FeatureZNode(
            layouts[after], FeatureStatus.ENABLED, {"some.feature": 3}
        )

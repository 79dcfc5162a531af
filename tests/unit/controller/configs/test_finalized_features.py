"""UpdateFeatures in ZooKeeper mode."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from regent.admin.commands import Accepted, Outcome
from regent.controller.active_controller import ActiveController
from regent.controller.commands import (
    EntityResult,
    FeatureUpdate,
    UpdateFeatures,
    UpdateFeaturesResult,
    UpgradeType,
)
from regent.controller.topics.topic_commands import process_commands
from regent.protocol.error_codes import INVALID_REQUEST
from regent.zk_data import paths
from regent.zk_data.features import FeatureStatus, FeatureZNode, decode_feature, encode_feature
from tests.unit.controller.world import World


def cluster(features: Mapping[str, int] | None = None) -> tuple[World, ActiveController]:
    world = World()
    world.start_broker(1)
    active = world.fail_over()
    znode = FeatureZNode(2, FeatureStatus.ENABLED, dict(features or {}))
    world.put(paths.FEATURE, encode_feature(znode))
    return world, active


def update(
    world: World, active: ActiveController, *updates: FeatureUpdate, validate_only: bool = False
) -> Outcome:
    command = UpdateFeatures(updates, validate_only)
    (outcome,) = world.run(process_commands(active, (command,)))
    return outcome


def finalized(world: World) -> Mapping[str, int]:
    node = world.node(paths.FEATURE)
    return decode_feature(node.data).features


def test_what_is_finalized_can_be_deleted() -> None:
    world, active = cluster({"old": 2, "kept": 1})
    deletion = FeatureUpdate("old", 0, UpgradeType.SAFE_DOWNGRADE)
    assert update(world, active, deletion, validate_only=True) == Accepted(
        UpdateFeaturesResult({"old": EntityResult()})
    )
    assert finalized(world) == {"old": 2, "kept": 1}
    assert update(world, active, deletion) == Accepted(
        UpdateFeaturesResult({"old": EntityResult()})
    )
    assert finalized(world) == {"kept": 1}


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        (FeatureUpdate("", 1, UpgradeType.UPGRADE), "Feature name can not be empty."),
        (FeatureUpdate("old", 1, UpgradeType.UNKNOWN), "Received unknown upgrade type."),
        (FeatureUpdate("old", 0, UpgradeType.UPGRADE), "less than 1 without setting the SAFE"),
        (
            FeatureUpdate("new", 0, UpgradeType.SAFE_DOWNGRADE),
            "Can not delete non-existing finalized feature.",
        ),
        (FeatureUpdate("old", 2, UpgradeType.UPGRADE), "Can not upgrade a finalized feature"),
        (FeatureUpdate("old", 1, UpgradeType.UPGRADE), "Can not downgrade finalized feature"),
        (FeatureUpdate("old", 3, UpgradeType.SAFE_DOWNGRADE), "can not be greater than existing"),
        (FeatureUpdate("old", 3, UpgradeType.UPGRADE), "the provided feature is not supported."),
        (FeatureUpdate("new", 1, UpgradeType.UPGRADE), "the provided feature is not supported."),
    ],
)
def test_what_kafka_refuses(wanted: FeatureUpdate, message: str) -> None:
    world, active = cluster({"old": 2})
    outcome = update(world, active, wanted)
    assert isinstance(outcome, Accepted)
    result = outcome.result.features[wanted.feature]
    assert result.error_code == INVALID_REQUEST
    assert message in result.message
    assert finalized(world) == {"old": 2}


def test_below_protocol_version_2_7_there_are_no_features() -> None:
    world, active = cluster()
    active.context.cluster.inter_broker_protocol = (2, 6)
    outcome = update(world, active, FeatureUpdate("new", 1, UpgradeType.UPGRADE))
    assert isinstance(outcome, Accepted)
    assert outcome.result.error_code == INVALID_REQUEST
    assert outcome.result.message == "Feature versioning system is disabled."
    assert not outcome.result.features

"""UpdateFeatures: finalized features in ``/feature`` (KIP-584).

Brokers in ZooKeeper mode support no feature at all, in any version of Kafka. So nothing can be
finalized; what somebody has finalized nevertheless can be deleted.

Source: ``KafkaController.processFeatureUpdates``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from regent.admin.commands import Accepted, Outcome, Reason, Rejected
from regent.controller.active_controller import ActiveController
from regent.controller.commands import (
    EntityResult,
    FeatureUpdate,
    UpdateFeatures,
    UpdateFeaturesResult,
    UpgradeType,
)
from regent.controller.transitions.partition_state_znodes import epoch_guard
from regent.model.errors import MalformedZNodeError
from regent.protocol.error_codes import FEATURE_UPDATE_FAILED, INVALID_REQUEST
from regent.zk_data import paths
from regent.zk_data.effects import ReadData, Write
from regent.zk_data.features import FeatureZNode, decode_feature, encode_feature
from regent.zk_data.operations import SetData, Written, ZNode

FEATURES_SINCE: Final = (2, 7)
"""inter.broker.protocol.version from which features are finalized."""

_DONE: Final = EntityResult()


async def update_features(active: ActiveController, command: UpdateFeatures) -> Outcome:
    """Carry the command out. What is wrong is in the result of each feature."""
    if active.context.cluster.inter_broker_protocol < FEATURES_SINCE:
        return Accepted(
            UpdateFeaturesResult(
                error_code=INVALID_REQUEST, message="Feature versioning system is disabled."
            )
        )
    (node,) = await ReadData([paths.FEATURE])
    try:
        before = None if node is None else decode_feature(node.data)
    except MalformedZNodeError as error:
        return Rejected(Reason.INTERNAL_ERROR, f"{paths.FEATURE} cannot be read: {error.reason}")
    existing = {} if before is None else before.features
    results = {
        update.feature: _judge(update, existing.get(update.feature)) for update in command.updates
    }
    deleted = [feature for feature, result in results.items() if result == _DONE]
    if deleted and not command.validate_only and node is not None and before is not None:
        remaining = {f: level for f, level in existing.items() if f not in deleted}
        if not await _written(active, node, before, remaining):
            results |= {
                feature: EntityResult(FEATURE_UPDATE_FAILED, "Unable to update finalized features.")
                for feature in deleted
            }
    return Accepted(UpdateFeaturesResult(results))


async def _written(
    active: ActiveController, node: ZNode, before: FeatureZNode, features: Mapping[str, int]
) -> bool:
    content = encode_feature(FeatureZNode(before.version, before.status, dict(features)))
    (result,) = await Write(
        [SetData(paths.FEATURE, content, node.version)], guard=epoch_guard(active.context)
    )
    return isinstance(result, Written)


def _judge(update: FeatureUpdate, existing: int | None) -> EntityResult:
    """The result of an update: only the deletion of what is finalized is possible."""
    problem = _problem(update, existing)
    return _DONE if problem is None else EntityResult(INVALID_REQUEST, problem)


def _problem(update: FeatureUpdate, existing: int | None) -> str | None:
    level, kind = update.version_level, update.upgrade_type
    if not update.feature:
        return "Feature name can not be empty."
    if kind is UpgradeType.UNKNOWN:
        return "Received unknown upgrade type."
    if level < 1:
        if kind is UpgradeType.UPGRADE:
            return (
                f"Can not provide versionLevel: {level} less than 1 without setting the SAFE "
                "downgradeType in the request."
            )
        return "Can not delete non-existing finalized feature." if existing is None else None
    if existing is not None:
        if level == existing:
            verb = "downgrade" if kind is UpgradeType.SAFE_DOWNGRADE else "upgrade"
            return (
                f"Can not {verb} a finalized feature from existing versionLevel:{existing} to the "
                "same value."
            )
        if level < existing and kind is not UpgradeType.SAFE_DOWNGRADE:
            return (
                f"Can not downgrade finalized feature from existing versionLevel:{existing} to "
                f"provided versionLevel:{level} without setting the downgradeType to SAFE in the "
                "request."
            )
        if level > existing and kind is not UpgradeType.UPGRADE:
            return (
                "When the downgradeType is set to SAFE in the request, the provided "
                f"versionLevel:{level} can not be greater than existing versionLevel:{existing}."
            )
    return "Could not apply finalized feature update because the provided feature is not supported."

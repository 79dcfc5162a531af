"""UpdateFeatures, versions 0 and 1 (KIP-584, KIP-778)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from regent.admin.commands import Accepted
from regent.controller.commands import (
    FeatureUpdate,
    UpdateFeatures,
    UpdateFeaturesResult,
    UpgradeType,
)
from regent.endpoint.authorization import PeerAccess
from regent.endpoint.handling import AdminHandler
from regent.endpoint.refusals import WRONG_CONTROLLER, ApiError, error_of, fields_of
from regent.model.acls import AclOperation
from regent.protocol.entity_building import build_entity
from regent.protocol.error_codes import CLUSTER_AUTHORIZATION_FAILED
from regent.protocol.served_apis import UPDATE_FEATURES
from regent.protocol.server_codec import Request
from regent.runtime.ports import ControllerRequests

_UPGRADE_TYPE_SINCE: Final = 1
_NOT_ALLOWED: Final = ApiError(CLUSTER_AUTHORIZATION_FAILED, "Cluster authorization failed.")


async def _answer(request: Request, controller: ControllerRequests, access: PeerAccess) -> Any:
    if not await access.to_cluster(AclOperation.ALTER):
        return _response(request, _NOT_ALLOWED, {})
    if not controller.view.is_active:
        return _response(request, WRONG_CONTROLLER, {})
    outcome = await controller.carry_out(_command(request))
    if not isinstance(outcome, Accepted):
        return _response(request, error_of(outcome), {})
    result: UpdateFeaturesResult = outcome.result
    return _response(
        request,
        ApiError(result.error_code, result.message or None),
        {
            name: ApiError(each.error_code, each.message or None)
            for name, each in result.features.items()
        },
    )


def _command(request: Request) -> UpdateFeatures:
    entity, version = request.entity, request.header.api_version
    return UpdateFeatures(
        tuple(
            FeatureUpdate(each.feature, each.max_version_level, _upgrade_type(each, version))
            for each in entity.feature_updates
        ),
        validate_only=version >= _UPGRADE_TYPE_SINCE and entity.validate_only,
    )


def _upgrade_type(update: Any, version: int) -> UpgradeType:
    if version < _UPGRADE_TYPE_SINCE:
        return UpgradeType.SAFE_DOWNGRADE if update.allow_downgrade else UpgradeType.UPGRADE
    known = update.upgrade_type in tuple(UpgradeType)
    return UpgradeType(update.upgrade_type) if known else UpgradeType.UNKNOWN


def _response(request: Request, error: ApiError, results: Mapping[str, ApiError]) -> Any:
    return build_entity(
        UPDATE_FEATURES.responses[request.header.api_version],
        {
            **fields_of(error),
            "results": [{"feature": name, **fields_of(each)} for name, each in results.items()],
        },
    )


HANDLER: Final = AdminHandler(UPDATE_FEATURES, _answer)

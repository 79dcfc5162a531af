"""AlterUserScramCredentials, version 0 (KIP-554)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from regent.admin.commands import Accepted
from regent.controller.commands import (
    AlterUserScramCredentials,
    EntityResult,
    ScramDeletion,
    ScramUpsertion,
)
from regent.endpoint.authorization import PeerAccess
from regent.endpoint.handling import AdminHandler
from regent.endpoint.refusals import WRONG_CONTROLLER, ApiError, error_of, fields_of
from regent.model.acls import AclOperation
from regent.protocol.entity_building import build_entity
from regent.protocol.error_codes import CLUSTER_AUTHORIZATION_FAILED
from regent.protocol.served_apis import ALTER_USER_SCRAM_CREDENTIALS
from regent.protocol.server_codec import Request
from regent.runtime.ports import ControllerRequests

_MECHANISMS: Final[Mapping[int, str]] = {1: "SCRAM-SHA-256", 2: "SCRAM-SHA-512"}
_NOT_ALLOWED: Final = ApiError(CLUSTER_AUTHORIZATION_FAILED, "Cluster authorization failed.")


async def _answer(request: Request, controller: ControllerRequests, access: PeerAccess) -> Any:
    command = _command(request)
    if not controller.view.is_active:
        return _error_response(request, command, WRONG_CONTROLLER)
    if not await access.to_cluster(AclOperation.ALTER):
        return _error_response(request, command, _NOT_ALLOWED)
    outcome = await controller.carry_out(command)
    if not isinstance(outcome, Accepted):
        return _error_response(request, command, error_of(outcome))
    results: Mapping[str, EntityResult] = outcome.result
    return _response(
        request,
        {user: ApiError(each.error_code, each.message or None) for user, each in results.items()},
    )


def _command(request: Request) -> AlterUserScramCredentials:
    entity = request.entity
    return AlterUserScramCredentials(
        upsertions=tuple(
            ScramUpsertion(
                each.name,
                _MECHANISMS.get(each.mechanism),
                each.iterations,
                each.salt,
                each.salted_password,
            )
            for each in entity.upsertions
        ),
        deletions=tuple(
            ScramDeletion(each.name, _MECHANISMS.get(each.mechanism)) for each in entity.deletions
        ),
    )


def _error_response(request: Request, command: AlterUserScramCredentials, error: ApiError) -> Any:
    users = [each.user for each in command.deletions] + [each.user for each in command.upsertions]
    return _response(request, dict.fromkeys(users, error))


def _response(request: Request, results: Mapping[str, ApiError]) -> Any:
    return build_entity(
        ALTER_USER_SCRAM_CREDENTIALS.responses[request.header.api_version],
        {"results": [{"user": user, **fields_of(error)} for user, error in results.items()]},
    )


HANDLER: Final = AdminHandler(ALTER_USER_SCRAM_CREDENTIALS, _answer)

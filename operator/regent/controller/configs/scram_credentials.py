"""AlterUserScramCredentials: credentials of users in ``/config/users`` (KIP-554).

What is wrong with a request is found out user by user, in Kafka's order: unusable entries, entries
that say two things of one credential, deletions of what is not there. A user of whom anything is
wrong is left as it is. Configuration and notification are one transaction, as for topics.

A name that no znode can have, or that is too long for a request to ZooKeeper, is unacceptable here.
Upstream sends it; a path that is too long costs it the connection.

Source: ``ZkAdminManager.alterUserScramCredentials``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final, NamedTuple

from regent.admin.commands import Accepted
from regent.controller.active_controller import ActiveController
from regent.controller.commands import (
    AlterUserScramCredentials,
    EntityResult,
    ScramDeletion,
    ScramUpsertion,
)
from regent.controller.transitions.partition_state_znodes import epoch_guard
from regent.model.errors import (
    MalformedZNodeError,
    UnexpectedZooKeeperError,
    ZooKeeperUnavailableError,
)
from regent.model.scram_credential import (
    MAX_ITERATIONS,
    MIN_ITERATIONS,
    credential_from_salted_password,
)
from regent.protocol.error_codes import (
    DUPLICATE_RESOURCE,
    RESOURCE_NOT_FOUND,
    UNACCEPTABLE_CREDENTIAL,
    UNKNOWN_SERVER_ERROR,
    UNSUPPORTED_SASL_MECHANISM,
)
from regent.zk_data import paths
from regent.zk_data.config import (
    ConfigEntity,
    decode_entity_config,
    encode_config_change,
    encode_entity_config,
)
from regent.zk_data.effects import Multi
from regent.zk_data.operations import Create, Operation, SetData, ZNode
from regent.zk_data.permitted_reads import UnreadableZNode, read_permitted
from regent.zk_data.scram_credentials import encode_scram_credential
from regent.zk_data.transactions import all_written, raise_if_moved

USERS_PER_TRANSACTION: Final = 50
"""If one conflicts, all of a transaction are written again, each by itself."""

ATTEMPTS: Final = 10
"""At the configuration of a user that others write at the same time."""

_DONE: Final = EntityResult()
_DUPLICATE: Final = EntityResult(
    DUPLICATE_RESOURCE, "A user credential cannot be altered twice in the same request"
)
_NOT_FOUND: Final = EntityResult(
    RESOURCE_NOT_FOUND, "Attempt to delete a user credential that does not exist"
)

Results = dict[str, EntityResult]


class _UserConfig(NamedTuple):
    """A user's configuration as it was read."""

    config: Mapping[str, str]
    version: int | None


async def alter_user_scram_credentials(
    active: ActiveController, command: AlterUserScramCredentials
) -> Accepted:
    """Carry the command out. What is wrong is in the result of each user."""
    results = request_problems(command)
    users = [user for user in _users(command) if user not in results]
    for start in range(0, len(users), USERS_PER_TRANSACTION):
        chunk = users[start : start + USERS_PER_TRANSACTION]
        results |= await _alter(active, command, chunk)
    return Accepted(results)


def request_problems(command: AlterUserScramCredentials) -> Results:
    """What is wrong with the request itself, by user."""
    problems: Results = {}
    for entry in _entries(command):
        problem = _entry_problem(entry)
        if problem is not None:
            problems[entry.user] = problem
    pairs = Counter(
        (entry.user, entry.mechanism) for entry in _entries(command) if entry.user not in problems
    )
    problems |= {user: _DUPLICATE for (user, _), times in pairs.items() if times > 1}
    return problems


def _entry_problem(entry: ScramUpsertion | ScramDeletion) -> EntityResult | None:
    if not entry.user:
        return EntityResult(UNACCEPTABLE_CREDENTIAL, "Username must not be empty")
    if not paths.is_entity_name(entry.user):
        return EntityResult(
            UNACCEPTABLE_CREDENTIAL,
            f"Username must not be . or .., nor have more than {paths.MAX_ENTITY_NAME} characters",
        )
    if entry.mechanism is None:
        return EntityResult(UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism")
    if isinstance(entry, ScramUpsertion):
        if entry.iterations > MAX_ITERATIONS:
            return EntityResult(UNACCEPTABLE_CREDENTIAL, "Too many iterations")
        if entry.iterations < MIN_ITERATIONS:
            return EntityResult(UNACCEPTABLE_CREDENTIAL, "Too few iterations")
    return None


def _entries(command: AlterUserScramCredentials) -> tuple[ScramUpsertion | ScramDeletion, ...]:
    """What is wrong with the last one of a user counts."""
    return (*command.deletions, *command.upsertions)


def _users(command: AlterUserScramCredentials) -> list[str]:
    return list(dict.fromkeys(entry.user for entry in _entries(command)))


async def _alter(
    active: ActiveController,
    command: AlterUserScramCredentials,
    users: Sequence[str],
    sent: Mapping[str, bytes] = MappingProxyType({}),
) -> Results:
    """Change users in one transaction; where it conflicts, each by itself, on what is there then.

    Where the answer to a transaction is lost with the connection, what is read then says whether it
    took place.

    Args:
        sent: As for :func:`_decide`.
    """
    refused: UnexpectedZooKeeperError | None = None
    for _ in range(1 if len(users) > 1 else ATTEMPTS):
        results, changes = await _decide(active, command, users, sent)
        if not changes:
            return results
        sent = {user: encode_entity_config(change.config) for user, change in changes.items()}
        operations = [
            operation for user, change in changes.items() for operation in _write(user, change)
        ]
        try:
            written = await Multi([epoch_guard(active.context), *operations])
        except ZooKeeperUnavailableError:
            continue
        except UnexpectedZooKeeperError as error:
            refused = error
            break
        if all_written(written):
            return results
        raise_if_moved(written)
    if len(users) > 1:
        merged: Results = {}
        for user in users:
            merged |= await _alter(active, command, [user], sent)
        return merged
    if refused is not None:
        active.log.error("Credentials not written", user=users[0], answer=str(refused))
        return {users[0]: EntityResult(UNKNOWN_SERVER_ERROR, str(refused))}
    active.log.warning("Credentials not written: others write at the same time", user=users[0])
    return {users[0]: EntityResult(UNKNOWN_SERVER_ERROR, "Others change the user; try again")}


async def _decide(
    active: ActiveController,
    command: AlterUserScramCredentials,
    users: Sequence[str],
    sent: Mapping[str, bytes],
) -> tuple[Results, dict[str, _UserConfig]]:
    """The results if the changes are written.

    Args:
        sent: By user what was sent to be written before: if it is there, nothing is to be done.
    """
    nodes = await read_permitted([paths.user_config(user) for user in users])
    results: Results = {}
    changes: dict[str, _UserConfig] = {}
    for user, node in zip(users, nodes, strict=True):
        if node is not None and node.data == sent.get(user):
            results[user] = _DONE
            continue
        before = _read(active, user, node)
        after = before if isinstance(before, EntityResult) else _changed(command, user, before)
        if isinstance(after, EntityResult):
            results[user] = after
        else:
            results[user] = _DONE
            changes[user] = after
    return results, changes


def _read(active: ActiveController, user: str, node: ZNode | None) -> _UserConfig | EntityResult:
    path = paths.user_config(user)
    if isinstance(node, UnreadableZNode):
        active.log.error("Configuration of a user not readable", path=path)
        return EntityResult(UNKNOWN_SERVER_ERROR, f"{path} may not be read by Regent")
    if node is None:
        return _UserConfig({}, None)
    try:
        return _UserConfig(decode_entity_config(path, node.data), node.version)
    except MalformedZNodeError as error:
        active.log.error("Malformed configuration of a user", path=path, reason=error.reason)
        return EntityResult(UNKNOWN_SERVER_ERROR, f"{path} cannot be read: {error.reason}")


def _changed(
    command: AlterUserScramCredentials, user: str, before: _UserConfig
) -> _UserConfig | EntityResult:
    after = dict(before.config)
    for deletion in command.deletions:
        if deletion.user == user and after.pop(deletion.mechanism or "", None) is None:
            return _NOT_FOUND
    for upsertion in command.upsertions:
        if upsertion.user == user and upsertion.mechanism is not None:
            after[upsertion.mechanism] = encode_scram_credential(
                credential_from_salted_password(
                    upsertion.mechanism,
                    salt=upsertion.salt,
                    salted_password=upsertion.salted_password,
                    iterations=upsertion.iterations,
                )
            )
    return before._replace(config=after)


def _write(user: str, after: _UserConfig) -> list[Operation]:
    path, content = paths.user_config(user), encode_entity_config(after.config)
    entity = ConfigEntity("users", paths.sanitized(user))
    return [
        Create(path, content) if after.version is None else SetData(path, content, after.version),
        Create(
            paths.config_change_prefix(), encode_config_change(entity.entity_path), sequential=True
        ),
    ]

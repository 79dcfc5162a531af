"""What clients of the endpoint have to know: SCRAM users in ZooKeeper, PLAIN users in a file."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path

import yaml

from regent.files.small_files import read_small
from regent.files.yaml_loading import load_yaml
from regent.model.errors import ConfigurationError, MalformedZNodeError, ZooKeeperError
from regent.model.scram_credential import ScramCredential
from regent.network.file_state import state_of
from regent.protocol.serving import CredentialsUnavailableError
from regent.zk_data import paths
from regent.zk_data.operations import ZNode
from regent.zk_data.scram_credentials import decode_scram_credential

logger = logging.getLogger(__name__)

GetData = Callable[[Sequence[str]], Awaitable[Sequence[ZNode | None]]]
"""``ZooKeeperPort.get_data``."""


class ServerCredentials:
    """Implements :class:`~regent.protocol.serving.Credentials`.

    Args:
        get_data: Reads znodes. A user's credential is read at every authentication.
        users_file: PLAIN users; None for none. It is read again when it has changed.

    Raises:
        ConfigurationError: If the file cannot be used at the start.
    """

    def __init__(self, get_data: GetData, *, users_file: Path | None = None) -> None:
        self._get_data = get_data
        self._file = users_file
        self._seen = None if users_file is None else state_of([users_file])
        self._passwords = {} if users_file is None else read_users(users_file)

    async def password(self, username: str) -> str | None:
        """Password of a PLAIN user; None if there is no such user."""
        if self._file is not None and (state := state_of([self._file])) != self._seen:
            self._seen = state
            try:
                self._passwords = read_users(self._file)
            except ConfigurationError as error:
                logger.error("changed file of users not used", extra={"error": str(error)})
        return self._passwords.get(username)

    async def scram_credential(self, mechanism: str, username: str) -> ScramCredential | None:
        """Of a SCRAM user; None if there is no such user, or none of that mechanism.

        Raises:
            CredentialsUnavailableError: If ZooKeeper does not say.
        """
        if not paths.is_entity_name(username):
            return None
        path = paths.user_config(username)
        try:
            (node,) = await self._get_data([path])
            return None if node is None else decode_scram_credential(path, node.data, mechanism)
        except (ZooKeeperError, MalformedZNodeError) as error:
            raise CredentialsUnavailableError(str(error)) from error


def read_users(file: Path) -> Mapping[str, str]:
    """Passwords by user, from a YAML file.

    Raises:
        ConfigurationError: If the file cannot be read or is something else. Its contents are not
            in the message.
    """
    try:
        content = load_yaml(read_small(file).decode())
    except OSError as error:
        raise ConfigurationError(f"file of users {file} cannot be read: {error}") from error
    except (ValueError, yaml.YAMLError):
        raise ConfigurationError(
            f"file of users {file} is not YAML in UTF-8, or names a user twice"
        ) from None
    if not isinstance(content, dict):
        raise ConfigurationError(f"file of users {file} must be a mapping of users to passwords")
    for number, (user, password) in enumerate(content.items(), start=1):
        if not (isinstance(user, str) and isinstance(password, str) and user and password):
            raise ConfigurationError(
                f"file of users {file}: user and password of entry {number} must be text; put what "
                "looks like a number into quotes"
            )
    return content

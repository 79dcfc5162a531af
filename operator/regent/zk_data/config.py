"""Dynamic configuration: ``/config/<type>/<name>`` and the notifications in ``/config/changes``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from regent.model.errors import MalformedZNodeError
from regent.zk_data.decoding import Int32, json_decoder, json_object


class ConfigEntity(NamedTuple):
    """What a configuration belongs to.

    Attributes:
        entity_type: ``topics``, ``brokers``, ``users``, ``clients`` or ``ips``.
        entity_name: Name, ``<default>``, or for a client of a user ``<user>/clients/<client>``.
    """

    entity_type: str
    entity_name: str

    @property
    def entity_path(self) -> str:
        """As the notification has it: relative to ``/config``."""
        return f"{self.entity_type}/{self.entity_name}"


class _EntityConfig(msgspec.Struct):
    config: dict[str, str] | None = None


class _ConfigChange(msgspec.Struct):
    version: Int32
    entity_path: str | None = None
    entity_type: str | None = None
    entity_name: str | None = None


_decode_config = json_decoder(_EntityConfig)
_decode_change = json_decoder(_ConfigChange)


def decode_entity_config(path: str, data: bytes) -> dict[str, str]:
    """Configuration overrides of an entity; an empty node has none, as in Kafka.

    Raises:
        MalformedZNodeError: If the node does not decode or a value is not a string.
    """
    return (_decode_config(path, data).config or {}) if data else {}


def encode_entity_config(config: Mapping[str, str]) -> bytes:
    """Inverse of :func:`decode_entity_config`."""
    return json_object([("version", 1), ("config", dict(config))])


def decode_config_change(path: str, data: bytes) -> ConfigEntity:
    """The entity whose configuration has changed, from a notification of version 1 or 2.

    Raises:
        MalformedZNodeError: If the notification does not decode.
    """
    change = _decode_change(path, data)
    if change.version == 1:
        entity_type, entity_name = change.entity_type or "", change.entity_name or ""
    elif change.version == 2:
        entity_type, _, entity_name = (change.entity_path or "").partition("/")
    else:
        raise MalformedZNodeError(path, f"unsupported version {change.version}")
    if not (entity_type and entity_name):
        raise MalformedZNodeError(path, "no entity")
    return ConfigEntity(entity_type, entity_name)


def encode_config_change(entity_path: str) -> bytes:
    """A notification of version 2 for an entity path such as ``topics/orders``."""
    return json_object([("version", 2), ("entity_path", entity_path)])

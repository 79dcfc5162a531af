"""Asking a broker what it understands."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from regent.protocol.api_versions import VersionRange
from regent.protocol.connection_setup import (
    UnknownApiVersionsError,
    api_versions_request,
    decode_api_versions_response,
)

if TYPE_CHECKING:
    from regent.network.connection import BrokerConnection

_SOFTWARE_VERSION: Final = importlib.metadata.version("regent")


async def ask_versions(connection: BrokerConnection) -> Mapping[int, VersionRange]:
    """Version ranges by API key.

    Raises:
        OSError: If the connection breaks.
        DecodeError: If the broker answers nonsense.
    """
    body = await connection.set_up(api_versions_request(_SOFTWARE_VERSION))
    try:
        return decode_api_versions_response(3, body)
    except UnknownApiVersionsError:
        body = await connection.set_up(api_versions_request(_SOFTWARE_VERSION, version=0))
        return decode_api_versions_response(0, body)

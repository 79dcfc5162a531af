"""Asking a broker how it is set up, and again while it runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from regent.model.topic_config import BrokerFacts, narrowed_versions
from regent.network.connection import BrokerConnection
from regent.protocol.api_versions import ProtocolVersion, VersionRange
from regent.protocol.broker_versions import possible_versions
from regent.protocol.connection_setup import (
    BrokerSettings,
    broker_settings_request,
    decode_broker_settings_response,
)

SETTINGS_INTERVAL: Final = 60.0
"""Seconds after which a broker is asked for its settings again: some of them change while it runs,
such as a dynamic ``min.insync.replicas``. Its own notice of that may be behind the controller's, so
it is not asked when a change is notified."""


class SettingsQuestion:
    """Asks a broker for its settings, and knows when to ask again.

    Args:
        now: Returns the present loop time.
    """

    def __init__(self, broker_id: int, *, now: Callable[[], float]) -> None:
        self._broker_id = broker_id
        self._now = now
        self._asked_at = now()

    @property
    def due_at(self) -> float:
        """When to ask again, as loop time."""
        return self._asked_at + SETTINGS_INTERVAL

    def is_due(self) -> bool:
        """Whether it is time to ask again."""
        return self._now() >= self.due_at

    async def ask(self, connection: BrokerConnection) -> BrokerSettings | str:
        """The settings, or Kafka's name of the error with which the broker refuses to give them.

        Raises:
            OSError: If the connection breaks, or leads to another broker.
            DecodeError: If the broker answers nonsense.
        """
        body = await connection.set_up(broker_settings_request(self._broker_id))
        self._asked_at = self._now()
        return decode_broker_settings_response(body)


def broker_facts(
    broker_id: int,
    reported: BrokerSettings,
    supported: Mapping[int, VersionRange],
    *,
    protocol_version: ProtocolVersion | None,
) -> BrokerFacts:
    """What decides which topic configurations a broker can load.

    Args:
        supported: What it understands.
        protocol_version: Counts where the broker did not say its own.
    """
    version = reported.protocol_version or protocol_version
    versions, settings = possible_versions(supported), reported.topics
    if settings is not None:
        versions = narrowed_versions(versions, settings)
    return BrokerFacts(
        broker_id=broker_id,
        versions=versions,
        protocol_version=None if version is None else version[:2],
        settings=None
        if settings is None
        else {key: value for key, value in settings.items() if value is not None},
        has_answered=True,
        api_versions=supported,
    )

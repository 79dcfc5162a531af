"""Brokers as their registration in ZooKeeper describes them."""

from __future__ import annotations

from typing import Final, NamedTuple

import msgspec

DRAWN_CONTROLLER_IDS: Final = range(1_000_000_000, 1_100_000_000)
"""Of these a Regent draws its id if it is given none. Brokers' ids count up from 0."""


class EndPoint(msgspec.Struct, frozen=True):
    """One listener of a broker.

    Attributes:
        listener: Listener name, for instance ``PLAINTEXT`` or ``REPLICATION``.
        security_protocol: ``PLAINTEXT``, ``SSL``, ``SASL_PLAINTEXT`` or ``SASL_SSL``.
    """

    listener: str
    security_protocol: str
    host: str
    port: int


class Address(NamedTuple):
    """Where something can be reached."""

    host: str
    port: int


class Broker(msgspec.Struct, frozen=True):
    """A registered broker.

    Attributes:
        broker_id: The id under ``/brokers/ids``.
        epoch: czxid of the registration znode: the broker epoch of KIP-380, which differs
            between two lives of one broker.
        endpoints: All listeners, in the order of the registration.
        rack: ``broker.rack``, if set.
        registration_version: ``version`` of the registration JSON. 5 exactly from
            inter.broker.protocol.version 2.7-IV0 on.
        features: Supported features, name to (min, max) version level (KIP-584).
        session_id: ZooKeeper session of the registration; 0 if not known.
    """

    broker_id: int
    epoch: int
    endpoints: tuple[EndPoint, ...]
    rack: str | None = None
    registration_version: int = 4
    features: dict[str, tuple[int, int]] = {}
    session_id: int = 0

    def endpoint(self, listener: str) -> EndPoint | None:
        """The endpoint of that listener, or None if the broker does not have it."""
        return next((e for e in self.endpoints if e.listener == listener), None)

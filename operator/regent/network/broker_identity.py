"""Whether the broker that answers at an address is the one that is meant.

Two registrations can have one address: a copied ``advertised.listeners``, two names of one host,
one load balancer before several brokers. Whoever is asked in another broker's place answers for
itself.
"""

from __future__ import annotations

from collections.abc import Mapping

from regent.network.connection import BrokerConnection
from regent.protocol.api_versions import VersionRange
from regent.protocol.connection_setup import broker_settings_request, check_identity


async def require_identity(
    connection: BrokerConnection, broker_id: int, *, supported: Mapping[int, VersionRange]
) -> None:
    """Raise if another broker answers on a connection. One that does not say whose settings it has,
    for want of a right, is taken for the one that is meant.

    Args:
        supported: What the broker understands, by API key.

    Raises:
        OtherBrokerError: If it is another one.
        OSError: If the connection breaks.
        DecodeError: If it answers nonsense.
    """
    request = broker_settings_request(broker_id)
    known = supported.get(request.api_key)
    if known is not None and known.lowest <= request.api_version <= known.highest:
        check_identity(await connection.set_up(request))

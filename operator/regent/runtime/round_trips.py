"""A port beside those of :mod:`regent.runtime.ports`: how long brokers take to answer."""

from __future__ import annotations

from typing import Protocol

from regent.model.cluster import Broker


class RoundTripPort(Protocol):
    """Asks brokers next to nothing, to see how long that takes."""

    async def round_trip_s(self, broker: Broker) -> float:
        """How long a broker takes for the smallest request, in seconds.

        Raises:
            BrokerQuestionError: If it does not answer.
        """
        ...

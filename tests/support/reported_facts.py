"""What brokers say of themselves where there are none."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from regent.model.cluster import Broker
from regent.model.topic_config import BrokerFacts

Settings = Mapping[int, Mapping[str, str] | None]
"""By broker; None: it has not answered. Those that are not in there leave everything unset."""


def facts_of(
    brokers: Iterable[Broker],
    settings: Settings | None = None,
    protocols: Mapping[int, tuple[int, int]] | None = None,
) -> list[BrokerFacts]:
    """The answers of brokers, without those that have not answered. Of others than in
    ``protocols`` it is not known which inter.broker.protocol.version they have."""
    said = {each.broker_id: (settings or {}).get(each.broker_id, {}) for each in brokers}
    return [
        BrokerFacts(
            broker_id=broker_id,
            settings=own,
            has_answered=True,
            protocol_version=(protocols or {}).get(broker_id),
        )
        for broker_id, own in said.items()
        if own is not None
    ]

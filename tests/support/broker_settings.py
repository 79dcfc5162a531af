"""Views of clusters whose brokers have said what their settings are."""

from __future__ import annotations

from regent.controller.view import ClusterView
from regent.model.cluster import Broker
from regent.model.topic_config import BrokerFacts


def view_of(*settings: dict[str, str] | None, live: tuple[int, ...] = (1, 2, 3)) -> ClusterView:
    """Brokers from 1 on, with what they say of themselves."""
    return ClusterView(
        is_active=True,
        brokers={number: Broker(number, epoch=1, endpoints=()) for number in live},
        broker_facts=tuple(
            BrokerFacts(broker_id=number, settings=each, has_answered=each is not None)
            for number, each in enumerate(settings, 1)
        ),
    )

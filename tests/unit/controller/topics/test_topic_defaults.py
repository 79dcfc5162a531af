"""Which broker's defaults count."""

from __future__ import annotations

from regent.controller.topic_defaults import TopicDefaults, topic_defaults
from regent.controller.view import ClusterView
from regent.model.cluster import Broker
from regent.model.topic_config import BrokerFacts

OWN = {
    "num.partitions": "6",
    "default.replication.factor": "3",
    "min.insync.replicas": "2",
}
OTHER = {"num.partitions": "1", "default.replication.factor": "1"}


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


def test_they_are_those_of_the_first_live_broker_that_says_them() -> None:
    assert topic_defaults(view_of(None, OWN, OTHER)) == TopicDefaults(6, 3, 2)
    assert topic_defaults(view_of(OTHER, None)) == TopicDefaults(1, 1, 1)


def test_any_broker_may_come_to_lead_a_partition() -> None:
    assert topic_defaults(view_of(OTHER, OWN)) == TopicDefaults(1, 1, min_insync_replicas=2)
    assert topic_defaults(view_of(OTHER, OWN, live=(1,))) == TopicDefaults(1, 1, 1)


def test_there_are_none_as_long_as_no_live_broker_has_said_them() -> None:
    assert topic_defaults(view_of(OWN, None, live=(2,))) is None
    assert topic_defaults(view_of(None)) is None

"""Which broker's defaults count."""

from __future__ import annotations

from regent.controller.topic_defaults import TopicDefaults, topic_defaults
from tests.support.broker_settings import view_of

OWN = {
    "num.partitions": "6",
    "default.replication.factor": "3",
    "min.insync.replicas": "2",
}
OTHER = {"num.partitions": "1", "default.replication.factor": "1"}


def test_they_are_those_of_the_first_live_broker_that_says_them() -> None:
    assert topic_defaults(view_of(None, OWN, OTHER)) == TopicDefaults(6, 3, 2)
    assert topic_defaults(view_of(OTHER, None)) == TopicDefaults(1, 1, 1)


def test_any_broker_may_come_to_lead_a_partition() -> None:
    assert topic_defaults(view_of(OTHER, OWN)) == TopicDefaults(1, 1, min_insync_replicas=2)
    assert topic_defaults(view_of(OTHER, OWN, live=(1,))) == TopicDefaults(1, 1, 1)


def test_there_are_none_as_long_as_no_live_broker_has_said_them() -> None:
    assert topic_defaults(view_of(OWN, None, live=(2,))) is None
    assert topic_defaults(view_of(None)) is None

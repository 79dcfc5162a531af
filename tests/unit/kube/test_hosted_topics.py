"""Which topics have replicas on which brokers."""

from __future__ import annotations

from regent.kube.hosted_topics import HostedTopics
from tests.unit.reconcile.requests import topic, view


def test_it_follows_the_topics_that_change() -> None:
    hosted = HostedTopics()
    before = view(topic((1, 2), name="a"), topic((2, 3), name="b"))
    assert hosted.on((1,), before) == ("a",)
    assert hosted.on((2, 3), before) == ("a", "b")
    after = view(topic((3, 2), name="a"), topic((2, 3), name="b"))
    assert hosted.see_topics(after, {"a"}) == {1, 2, 3}, "also those that it has left"
    assert hosted.on((1,), after) == ()
    assert hosted.on((3,), after) == ("a", "b")
    assert hosted.see_topics(view(topic((2, 3), name="b")), {"a"}) == {2, 3}
    assert hosted.on((3,), after) == ("b",)


def test_what_changed_while_nobody_looked_is_seen_when_somebody_does() -> None:
    hosted = HostedTopics()
    hosted.on((1,), view(topic((1, 2), name="a")))
    hosted.forget()
    assert hosted.on((1,), view(topic((2, 3), name="b"))) == ()
    assert hosted.see_topics(view(topic((1, 3), name="b")), {"b"}) == {1, 2, 3}

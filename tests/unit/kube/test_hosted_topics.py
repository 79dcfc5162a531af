"""Which topics have replicas on which brokers."""

from __future__ import annotations

from regent.controller.view import ClusterView, TopicView
from regent.kube.hosted_topics import HostedTopics
from regent.model.persistent_map import PersistentMap
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
    without_a = view(topic((2, 3), name="b"))
    assert hosted.see_topics(without_a, {"a"}) == {2, 3}
    assert hosted.on((3,), without_a) == ("b",)


def test_what_changed_while_nobody_looked_is_seen_when_somebody_does() -> None:
    hosted = HostedTopics()
    hosted.on((1,), view(topic((1, 2), name="a")))
    hosted.forget()
    assert hosted.on((1,), view(topic((2, 3), name="b"))) == ()
    assert hosted.see_topics(view(topic((1, 3), name="b")), {"b"}) == {1, 2, 3}


def test_a_view_of_which_no_news_has_come_yet_is_not_judged_by_the_one_before() -> None:
    """Views are made in another thread: a term may load completely before its news arrive."""
    hosted = HostedTopics()
    assert hosted.on((1,), ClusterView()) == ()
    loading = ClusterView(is_active=True)
    assert hosted.see_topics(loading, {"a"}) == frozenset()
    complete = view(topic((1, 2), name="a"), topic((2, 3), name="b"))
    assert hosted.on((1,), complete) == ("a",)
    topics = PersistentMap(complete.topics)
    assert hosted.on((3,), with_topics(topics)) == ("b",)
    grown = topics.updated({"c": topic((1, 2), name="c")}, removed=["a"])
    assert hosted.on((1,), with_topics(grown)) == ("c",)


def test_the_news_of_what_was_seen_before_them_concern_all_brokers_all_the_same() -> None:
    hosted = HostedTopics()
    topics = PersistentMap(view(topic((1, 2), name="a"), topic((4, 5), name="b")).topics)
    hosted.on((1,), with_topics(topics))
    moved = with_topics(topics.updated({"a": topic((2, 3), name="a")}))
    assert hosted.on((3,), moved) == ("a",), "one drain has looked already"
    assert hosted.see_topics(moved, {"a"}) == {1, 2, 3}
    assert hosted.see_topics(moved, set()) == frozenset()


def with_topics(topics: PersistentMap[str, TopicView]) -> ClusterView:
    return ClusterView(is_active=True, is_complete=True, topics=topics)

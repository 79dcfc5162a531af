from __future__ import annotations

from typing import Any

import pytest

from regent.kube.claim_index import ClaimIndex
from regent.kube.object_cache import ObjectCache, ObjectKey, is_history_restarted
from regent.reconcile.selection import ClusterSelection
from regent.reconcile.topics.kind import KAFKA_TOPIC
from regent.resources.kafka_topic import (
    FINALIZER,
    UnreadableTopic,
)
from tests.support.present import present
from tests.unit.kube.stored_objects import body, key, topic_cache


@pytest.mark.parametrize("version", ["5", "4", "10"])
def test_versions_are_numbers_not_texts(version: str) -> None:
    cache, _ = topic_cache()
    cache.put(body(version="5"))
    news = cache.put(body(version=version, generation=2))
    assert bool(news) == (int(version) > 5)


def test_versions_that_are_no_numbers_go_by_arrival() -> None:
    cache, _ = topic_cache()
    cache.put(body(version="a"))
    assert cache.put(body(version="a", generation=2)) == set()
    assert cache.put(body(version="b", generation=2)) == {key()}


@pytest.mark.parametrize(
    ("change", "news"),
    [
        ({"metadata": {"labels": {"a": "b"}}}, False),
        ({"metadata": {"annotations": {"a": "b"}}}, False),
        ({"generation": 2}, True),
        ({"status": {"partitions": 1}}, True),
        ({"metadata": {"finalizers": ["x"]}}, True),
        ({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}, True),
    ],
)
def test_what_is_news(change: dict[str, Any], news: bool) -> None:
    cache, _ = topic_cache()
    cache.put(body())
    assert bool(cache.put(body(version="2", **change))) is news
    known = present(cache.get(key()))
    assert known.version == "2"


def test_a_rival_is_news_for_those_that_it_goes_before() -> None:
    cache, index = topic_cache()
    cache.put(body("b", topicName="shared"))
    assert cache.put(body("a", topicName="shared")) == {key("a"), key("b")}
    assert cache.put(body("c", topicName="shared")) == {key("c")}
    assert cache.remove(key("c"), uid="uid-c") == {key("c")}
    assert {claim.name for claim in index.claims("shared")} == {"a", "b"}
    assert cache.remove(key("a"), uid="uid-a") == {key("a"), key("b")}
    assert index.keys("shared") == (key("b"),)
    assert cache.remove(key("b"), uid="uid-b") == {key("b")}
    assert index.claims("shared") == ()


def test_a_claim_carries_what_speaks_for_it_and_is_news_for_rivals() -> None:
    cache, index = topic_cache()
    cache.put(body("a", topicName="shared"))
    cache.put(body("b", topicName="shared"))
    status = {"ownership": "Created", "topicId": "x", "clusterId": "c"}
    finalizers = {"finalizers": [FINALIZER]}
    owner = body("b", "2", topicName="shared", status=status, metadata=finalizers)
    assert cache.put(owner) == {key("a"), key("b")}
    claim = next(claim for claim in index.claims("shared") if claim.name == "b")
    assert (claim.ownership, claim.topic_id, claim.cluster_id) == ("Created", "x", "c")
    assert claim.holds_finalizer


def test_an_object_created_again_is_another_one() -> None:
    cache, _ = topic_cache()
    cache.put(body(uid="old", version="7"))
    # Versions of different objects of one name are not compared.
    assert cache.put(body(uid="new", version="3")) == {key()}
    assert cache.remove(key(), uid="old") == set()
    assert cache.get(key()) is not None


def test_a_list_finds_what_a_watch_has_lost() -> None:
    cache, _ = topic_cache()
    for name in ("kept", "changed", "gone", "newer"):
        cache.put(body(name, version="50" if name == "newer" else "5"))
    listed = [body("kept", "5"), body("changed", "9", generation=2), body("added", "8")]
    assert cache.replace_all(listed, listed_version="20") == {
        key("changed"),
        key("gone"),
        key("added"),
    }
    # Created after the list was made: its absence there says nothing.
    assert cache.get(key("newer")) is not None
    assert len(cache) == 4


def test_a_list_of_one_namespace_says_nothing_of_others() -> None:
    cache, _ = topic_cache()
    elsewhere = ObjectKey("KafkaTopic", "blog", "posts")
    cache.put(body("stays", "3"))
    cache.put(body("goes", "4"))
    cache.put(body("created-after-the-list", "12"))
    cache.put(body("posts", "5", metadata={"namespace": "blog"}))
    news = cache.replace(
        [body("stays", "3"), body("comes", "6")],
        listed_version="10",
        among=lambda each: each.namespace == "shop",
    )
    assert news >= {key("goes"), key("comes")}
    assert elsewhere not in news
    assert set(cache.keys()) == {
        key("stays"), key("comes"), key("created-after-the-list"), elsewhere,
    }  # fmt: skip
    assert ("blog", "uid-posts") in cache.identities()


@pytest.mark.parametrize(
    ("status", "is_ready"),
    [
        ({"observedGeneration": 2, "conditions": [{"type": "Ready", "status": "True"}]}, True),
        ({"observedGeneration": 1, "conditions": [{"type": "Ready", "status": "True"}]}, False),
        ({"observedGeneration": 2, "conditions": [{"type": "Ready", "status": "False"}]}, False),
        ({"observedGeneration": 2, "conditions": [{"type": "Healthy", "status": "True"}]}, False),
        ({}, False),
    ],
)
def test_an_object_is_ready_if_its_status_says_so_of_its_generation(
    status: dict[str, Any], is_ready: bool
) -> None:
    cache, _ = topic_cache()
    cache.put(body(generation=2, status=status))
    assert cache.keys_not_ready() == (frozenset() if is_ready else {key()})


def test_a_deleted_object_is_not_revived_by_what_the_watch_has_overtaken() -> None:
    cache, index = topic_cache()
    cache.put(body("first", topicName="orders"))
    cache.put(body("second", topicName="orders"))
    assert cache.delete(key("first"), uid="uid-first") == {key("first"), key("second")}

    assert cache.put(body("first", version="9", topicName="orders")) == frozenset()
    late = [body("first", topicName="orders"), body("second", topicName="orders")]
    assert cache.replace_all(late, listed_version="1") == frozenset()

    assert cache.keys() == (key("second"),)
    assert [claim.name for claim in index.claims("orders")] == ["second"]
    assert cache.put(body("first", version="12", uid="another", topicName="orders"))


def test_a_list_of_an_earlier_state_replaces_all_that_is_known() -> None:
    """A backup of etcd was restored: versions are given anew from there."""
    cache, _ = topic_cache()
    cache.replace_all([body("kept", "40"), body("back", "50")], listed_version="60")
    cache.put(body("kept", "90", generation=2))
    cache.put(body("later", "80"))
    cache.delete(key("back"), uid="uid-back")

    restored, since = [body("kept", "40"), body("back", "50")], cache.newest_version
    assert cache.shows_earlier_state(restored, listed_version="65", since=since)
    news = cache.replace_all(restored, listed_version="65", is_restarted=True)
    assert news == {key("kept"), key("back"), key("later")}
    assert set(cache.keys()) == {key("kept"), key("back")}
    known = present(cache.get(key("kept")))
    assert (known.version, known.generation) == ("40", 1)
    assert cache.put(body("kept", "66", generation=2)) == {key("kept")}
    assert cache.newest_version == 66


def test_an_earlier_state_is_found_once() -> None:
    """Also with an object in the list that was kept from before: its namespace is closed now."""
    cache, _ = topic_cache()
    cache.replace_all([body("kept", "90")], listed_version="90")
    kept = body("kept", "90")
    assert cache.shows_earlier_state([kept], listed_version="65", since=cache.newest_version)
    cache.replace_all([kept], listed_version="65", is_restarted=True)
    assert not cache.shows_earlier_state([kept], listed_version="65", since=cache.newest_version)


@pytest.mark.parametrize("version", ["65", "60", "0", ""])
def test_what_was_learned_while_a_list_was_made_speaks_of_no_earlier_state(version: str) -> None:
    """So does a list of nothing: no namespace can be read."""
    cache, _ = topic_cache()
    cache.replace_all([body("known", "40")], listed_version="60")
    since = cache.newest_version
    cache.put(body("known", "90", generation=2))
    listed = [body("known", "40")]
    assert not cache.shows_earlier_state(listed, listed_version=version, since=since)
    assert cache.replace_all(listed, listed_version=version) == frozenset()
    assert is_history_restarted("59", since=since)


@pytest.mark.parametrize(
    ("listed", "is_earlier"),
    [
        ([body("known", "40")], True),
        ([body("known", "90", status={"partitions": 9})], True),
        ([body("known", "90")], False),
        ([body("known", "140", generation=2)], False),
        ([body("known", "40", uid="another")], False),
        ([body("known", "90"), body("gone", "50")], True),
        ([body("known", "90"), body("gone", "150", uid="another")], False),
        ([body("known", "90"), body("later", "40")], False),
        ([], False),
    ],
)
def test_objects_of_an_earlier_state_show_it_after_its_versions_have_caught_up(
    listed: list[dict[str, Any]], is_earlier: bool
) -> None:
    cache, _ = topic_cache()
    cache.replace_all([body("known", "90"), body("gone", "50")], listed_version="90")
    cache.delete(key("gone"), uid="uid-gone", version="95")
    cache.put(body("later", "300"))  # learned while the list was made
    assert cache.shows_earlier_state(listed, listed_version="200", since=95) is is_earlier


def test_a_list_from_before_a_deletion_or_a_write_shows_no_earlier_state() -> None:
    cache, _ = topic_cache()
    cache.replace_all([body("known", "40"), body("gone", "50")], listed_version="60")
    cache.put(body("known", "90"))
    cache.delete(key("gone"), uid="uid-gone", version="95")
    listed = [body("known", "40"), body("gone", "50")]
    assert not cache.shows_earlier_state(listed, listed_version="60", since=60)


def test_the_last_write_and_the_last_deletion_are_known() -> None:
    cache, _ = topic_cache()
    assert cache.newest(among=bool) is None
    assert cache.last_deletion is None
    cache.replace_all([body("old", "9"), body("new", "10")], listed_version="20")
    cache.delete(key("gone"), uid="uid-gone", version="15")
    assert cache.newest(among=bool) is cache.get(key("new"))
    assert cache.newest(among=lambda each: each.name == "old") is cache.get(key("old"))
    assert cache.last_deletion == (key("gone"), "uid-gone")


@pytest.mark.parametrize("spec", ["text", [1], 5, None])
def test_a_spec_of_another_shape_keeps_no_other_object_from_being_known(spec: object) -> None:
    """Another schema may have let it in; it must not stop the list that it is part of."""
    cache, index = topic_cache()
    odd = {**body("odd", "2"), "spec": spec}
    assert cache.replace_all([odd, body("orders", "3")], listed_version="4") == {
        key("odd"),
        key("orders"),
    }
    known = present(cache.get(key("odd")))
    assert isinstance(KAFKA_TOPIC.parse(known.body), UnreadableTopic)
    assert index.claims("odd") == ()


@pytest.mark.parametrize("status", ["text", [1], {"conditions": ["x"]}, {"conditions": 4}])
def test_a_status_of_another_shape_says_nothing(status: object) -> None:
    cache, _ = topic_cache()
    if isinstance(status, dict):
        status = {**status, "observedGeneration": 1}
    cache.put({**body(), "status": status})
    assert cache.keys_not_ready() == {key()}


class TestServedElsewhere:
    """Objects of another Regent are as if they were not there."""

    def _cache(self) -> ObjectCache:
        selection = ClusterSelection(name="east", is_default=True)
        return ObjectCache("KafkaTopic", ClaimIndex(KAFKA_TOPIC), serves=selection.serves)

    def test_they_are_not_kept(self) -> None:
        cache = self._cache()
        assert cache.put(body(clusterRef={"name": "west"})) == set()
        assert cache.put(body("a", clusterRef={"name": "east"})) == {key("a")}
        assert cache.keys() == (key("a"),)

    def test_one_that_is_handed_over_is_forgotten(self) -> None:
        cache = self._cache()
        cache.put(body(version="5"))
        assert cache.put(body(version="6", clusterRef={"name": "west"})) == {key()}
        assert cache.keys() == ()

    def test_a_version_of_before_the_hand_over_brings_nothing_back(self) -> None:
        cache = self._cache()
        cache.put(body(version="6", clusterRef={"name": "west"}))
        assert cache.put(body(version="5")) == set()
        assert cache.keys() == ()

    def test_one_of_the_same_name_takes_the_place_of_what_was_deleted(self) -> None:
        cache = self._cache()
        cache.put(body(version="5"))
        replaced = body(version="7", uid="another", clusterRef={"name": "west"})
        assert cache.put(replaced) == {key()}
        assert cache.put(body(version="6")) == {key()}, "its deletion is still to be reported"
        assert cache.delete(key(), uid="uid-orders", version="6") == {key()}

    def test_a_complete_list_shows_that_they_are_gone(self) -> None:
        cache = self._cache()
        cache.put(body(version="6", clusterRef={"name": "west"}))
        cache.replace_all([], listed_version="9")
        assert cache.put(body(version="5")) == {key()}, "nothing is remembered of it"

"""For which rivals a change of a claim is news: for n resources of one topic, or of one broker, all
changes for all would be n squared reconciliations."""

from __future__ import annotations

import dataclasses
import itertools
from random import Random
from typing import Any

import pytest

from regent.kube.claim_index import ClaimIndex
from regent.kube.object_cache import ObjectCache, ObjectKey
from regent.reconcile.drains.claims import DrainClaim, claim_before
from regent.reconcile.drains.claims import news as drain_news
from regent.reconcile.topics.claims import Claim, news
from regent.reconcile.topics.kind import KAFKA_TOPIC
from regent.resources.kafka_topic_status import Ownership

HERE, ELSEWHERE = "cluster-a", "cluster-b"
OLD, YOUNG = "2026-05-01T09:00:00Z", "2026-05-01T10:00:00Z"


def bare(uid: str, created: str = OLD, **more: Any) -> Claim:
    return Claim(namespace="shop", name=uid, uid=uid, created=created, **more)


def is_news_for(
    before: Claim | None, after: Claim | None, rival: Claim | None, *others: Claim
) -> bool:
    """Whether it is news for a rival, where there are others, too."""
    present = [claim for claim in (after, rival, *others) if claim is not None]
    return news(before, after, present)(rival)


def is_news_for_drain(
    before: DrainClaim | None, after: DrainClaim | None, rival: DrainClaim | None
) -> bool:
    return drain_news(before, after, ())(rival)


OWNER = bare("owner", holds_finalizer=True, ownership=Ownership.CREATED, cluster_id=HERE)


def test_a_first_status_is_no_news() -> None:
    before = bare("a")
    for rival in (bare("b", YOUNG), OWNER):
        assert not is_news_for(before, before.in_cluster(HERE), rival)
        assert is_news_for(before.in_cluster(HERE), before.in_cluster(ELSEWHERE), rival)


def test_what_only_age_speaks_for_is_news_for_younger_ones_and_for_the_owner() -> None:
    for before, after in ((None, bare("a", YOUNG)), (bare("a", YOUNG), None)):
        assert not is_news_for(before, after, bare("z", OLD))
        assert is_news_for(before, after, bare("b", YOUNG))
        assert is_news_for(before, after, OWNER)
        for elder in (bare("0", OLD), bare("0", YOUNG)):
            assert not is_news_for(before, after, bare("b", YOUNG), elder), "that one goes before"
        elsewhere = (
            bare("0", OLD, cluster_id=ELSEWHERE),
            bare("0", OLD, declared_cluster_id=HERE),
            dataclasses.replace(bare("0", OLD), namespace="another"),
        )
        assert is_news_for(before, after, bare("b", YOUNG), *elsewhere), "they may not count"
        served = bare("b", YOUNG, cluster_id=ELSEWHERE)
        assert not is_news_for(before, after, served, elsewhere[0]), "it does where that one counts"


def test_an_owner_that_comes_or_goes_is_news_for_all_that_claim_something() -> None:
    for before, after in ((None, OWNER), (OWNER, None), (bare("owner"), OWNER)):
        assert is_news_for(before, after, bare("a"))
        assert not is_news_for(before, after, None)


def verdicts(claims: list[Claim], topic_id: str | None) -> dict[str, tuple[str, str | None]]:
    """For each claim: which one counts, and for one that holds the finalizer, which would take over
    when its resource is deleted."""
    here = [claim for claim in claims if claim.is_for(HERE)]

    def first(among: list[Claim]) -> str | None:
        def precedence(each: Claim) -> tuple[int, str, str]:
            return (each.evidence(topic_id=topic_id, cluster_id=HERE), *each.age)

        return min(among, key=precedence).uid if among else None

    def successor(claim: Claim) -> str | None:
        others = [each for each in here if each is not claim]
        return first(others) if claim.holds_finalizer else None

    return {claim.uid: (first(here) or "", successor(claim)) for claim in here}


@pytest.mark.parametrize("seed", range(40))
def test_whatever_changes_who_counts_for_a_rival_is_news_for_it(seed: int) -> None:
    random = Random(seed)

    def drawn(uid: str) -> Claim:
        ownership = random.choice([None, None, None, *Ownership])
        return bare(
            uid,
            random.choice([OLD, YOUNG]),
            ownership=ownership,
            holds_finalizer=random.random() < 0.2,
            topic_id=None if ownership is None else random.choice([None, "x", "y"]),
            cluster_id=random.choice([HERE, HERE, ELSEWHERE, None]),
            declared_cluster_id=random.choice([None, None, HERE, ELSEWHERE]),
        )

    names = itertools.count()
    claims = [drawn(f"u{next(names)}") for _ in range(4)]
    for _ in range(200):
        topic_id = random.choice([None, "x", "y"])
        index = random.randrange(len(claims) + 1)
        before = claims[index] if index < len(claims) else None
        after = None
        if before is None or (random.random() < 0.5 or len(claims) < 3):
            after = drawn(before.uid if before else f"u{next(names)}")
            if before is not None:
                after = dataclasses.replace(after, created=before.created)
            if before is not None and before.cluster_id is None and after.cluster_id == ELSEWHERE:
                after = after.in_cluster(HERE)  # a first status names the cluster that serves it
        others = [claim for claim in claims if claim is not before]
        changed = [*others, *([] if after is None else [after])]
        then, now = verdicts(claims, topic_id), verdicts(changed, topic_id)
        for rival in others:
            if then.get(rival.uid) != now.get(rival.uid):
                assert news(before, after, changed)(rival), (before, after, rival)
        claims = changed


def drain(uid: str, created: str, *, has_begun: bool = False) -> DrainClaim:
    return DrainClaim("shop", uid, uid, (1,), created, has_begun, True, HERE)


def test_a_drain_is_news_for_those_that_it_goes_before_or_went() -> None:
    old, young = drain("a", OLD), drain("b", YOUNG)
    begun = dataclasses.replace(young, has_begun=True)
    assert is_news_for_drain(None, old, young)
    assert is_news_for_drain(old, None, young)
    assert not is_news_for_drain(young, None, old)
    assert is_news_for_drain(young, begun, old)
    assert is_news_for_drain(begun, None, old)
    assert not is_news_for_drain(old, None, None)
    assert not is_news_for_drain(old.in_cluster(None), old, young), "the first status"
    assert claim_before("a", [old, begun], cluster_id=HERE) == begun


def test_the_first_statuses_of_resources_with_one_topic_are_news_for_nobody_else() -> None:
    cache = ObjectCache("KafkaTopic", ClaimIndex(KAFKA_TOPIC))

    def put(index: int, version: int, **status: Any) -> frozenset[ObjectKey]:
        metadata = {
            "name": f"t{index}",
            "namespace": "shop",
            "uid": f"uid-{index}",
            "creationTimestamp": OLD,
            "generation": 1,
            "resourceVersion": str(version),
        }
        return cache.put({"metadata": metadata, "spec": {"topicName": "same"}, "status": status})

    for index in range(9):
        assert len(put(index, index + 1)) == 1, "it is younger than all that are there"
    for index in range(9):
        assert len(put(index, index + 11, clusterId=HERE)) == 1
    assert len(put(0, 30, clusterId=HERE, ownership="Created")) == 9

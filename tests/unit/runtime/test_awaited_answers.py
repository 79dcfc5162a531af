"""News of topics whose leaders have not answered yet: a little later, and once more in the end."""

from __future__ import annotations

from collections.abc import Mapping

from regent.controller.view import ClusterView, PartitionHealth, PartitionView, TopicView
from regent.runtime.awaited_answers import (
    HELD_S,
    AwaitedAnswers,
    awaiting,
    merged,
    unanswered_leaders,
)

NOTHING: frozenset[str] = frozenset()


def topic(name: str, *leaders: int, batch: int = 5) -> TopicView:
    partitions = (
        PartitionView(i, PartitionHealth.ONLINE, (leader,), leader, 1, (leader,))
        for i, leader in enumerate(leaders)
    )
    return TopicView(name, None, tuple(partitions), batch=batch)


def view(*topics: TopicView, unanswered: Mapping[int, int]) -> ClusterView:
    return ClusterView(topics={t.name: t for t in topics}, unanswered=unanswered)


def look(
    awaited: AwaitedAnswers, seen: ClusterView, described: list[str], *, at: float
) -> frozenset[str]:
    waiting = awaiting({name: seen.topics.get(name) for name in described}, seen.unanswered)
    return awaited.look(seen, described, list(waiting), at=at)


def due_at(awaited: AwaitedAnswers) -> float | None:
    return awaited.due_at


def test_a_leader_counts_once_it_has_answered_what_the_topic_is_in() -> None:
    led = topic("t", 1, 2, batch=5)
    assert unanswered_leaders(led, {}) == ()
    assert unanswered_leaders(led, {1: 5, 2: 3}) == (1, 2)
    assert unanswered_leaders(led, {1: 6, 3: 1}) == ()


def test_news_waits_for_the_answer_and_is_reported_once() -> None:
    awaited, t, other = AwaitedAnswers(), topic("t", 1), topic("other", 2)
    waiting = view(t, other, unanswered={1: 5})
    assert look(awaited, waiting, ["t", "other"], at=0.0) == {"other"}
    assert due_at(awaited) == HELD_S
    assert look(awaited, waiting, [], at=HELD_S / 2) == NOTHING
    assert look(awaited, view(t, other, unanswered={}), [], at=HELD_S / 2) == {"t"}
    assert due_at(awaited) is None
    assert look(awaited, view(t, other, unanswered={}), [], at=9.0) == NOTHING


def test_what_is_not_answered_for_long_is_news_now_and_again_in_the_end() -> None:
    awaited, t = AwaitedAnswers(), topic("t", 1)
    assert look(awaited, view(t, unanswered={1: 5}), ["t"], at=0.0) == NOTHING
    assert look(awaited, view(t, unanswered={1: 5}), [], at=HELD_S) == {"t"}
    assert look(awaited, view(t, unanswered={1: 5}), [], at=9.0) == NOTHING
    assert look(awaited, view(t, unanswered={1: 6}), [], at=10.0) == {"t"}


def test_changes_without_end_hold_nothing_back() -> None:
    awaited = AwaitedAnswers()
    for batch in range(10):
        seen = view(topic("t", 1, batch=batch), unanswered={1: 0})
        news = look(awaited, seen, ["t"], at=batch * HELD_S / 5)
        assert (news == {"t"}) == (batch == 5)


def test_a_topic_waits_for_all_of_its_leaders() -> None:
    awaited, t = AwaitedAnswers(), topic("t", 1, 2)
    assert look(awaited, view(t, unanswered={1: 5, 2: 4}), ["t"], at=0.0) == NOTHING
    assert look(awaited, view(t, unanswered={2: 4}), [], at=0.1) == NOTHING
    assert look(awaited, view(t, unanswered={1: 7}), [], at=0.2) == {"t"}


def test_a_topic_that_is_gone_waits_for_nobody() -> None:
    awaited = AwaitedAnswers()
    look(awaited, view(topic("t", 1), unanswered={1: 5}), ["t"], at=0.0)
    assert look(awaited, view(unanswered={1: 5}), ["t"], at=0.1) == {"t"}
    assert look(awaited, view(unanswered={}), [], at=0.2) <= {"t"}
    assert look(awaited, view(unanswered={1: 9}), [], at=9.0) == NOTHING


def test_after_everything_was_news_only_what_is_unanswered_is_so_again() -> None:
    awaited, t, other = AwaitedAnswers(), topic("t", 1), topic("other", 2)
    awaited.everything(view(t, other, unanswered={1: 5}), [("t", 1)])
    assert awaited.due_at is None
    assert look(awaited, view(t, other, unanswered={}), [], at=9.0) == {"t"}


def test_of_two_moments_the_older_batch_counts() -> None:
    assert merged({1: 5, 2: 7}, {2: 6, 3: 8}) == {1: 5, 2: 6, 3: 8}
    assert merged({}, {1: 5}) == merged({1: 5}, {}) == {1: 5}

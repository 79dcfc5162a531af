"""Whether a topic is in use: what keeps it although its resource was deleted.

Only what is known to be unused may go. So every doubt counts as use: a broker that does not answer,
an error, groups whose coordinator is not there, an answer that is not of this moment.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, NamedTuple

from regent.controller.view import ClusterView, TopicView
from regent.reconcile.unreadable_topics import problem_of
from regent.resources.conditions import enumerate_some

FRESH_S: Final = 30.0
"""For so long it counts that a topic is not in use."""

ASKED_AGAIN_S: Final = 60.0
"""After so long brokers are asked again about a topic that is in use."""

GROUP_METADATA_TOPIC: Final = "__consumer_offsets"
"""Who leads a partition of it coordinates groups."""

_NAMED: Final = 5


class UsageQuestion(NamedTuple):
    """What is to be found out about a topic.

    Attributes:
        czxid: Transaction that created its node: another one is another topic.
        partitions: How many it has.
        idle_s: For how long nothing may have been written.
    """

    topic: str
    czxid: int
    partitions: int
    idle_s: int


@dataclass(frozen=True, slots=True)
class TopicUsage:
    """What was found out.

    Attributes:
        at: Monotonic seconds at which the brokers were asked.
        recent: Partitions with records that are not older than ``question.idle_s``.
        groups: Consumer groups that use it, each with how.
        unknown: What could not be found out, and why.
    """

    question: UsageQuestion
    at: float
    recent: tuple[int, ...] = ()
    groups: tuple[tuple[str, str], ...] = ()
    unknown: tuple[str, ...] = ()

    def is_outdated(self, *, at: float) -> bool:
        """Whether brokers are to be asked again."""
        return at - self.at >= (FRESH_S if self.protection is None else ASKED_AGAIN_S)

    @property
    def protection(self) -> str | None:
        """What keeps the topic; None: it is not in use."""
        reasons = []
        if self.recent:
            named = enumerate_some([str(index) for index in self.recent], limit=_NAMED)
            reasons.append(
                f"records of the last {self.question.idle_s} seconds are in partitions {named}"
            )
        if self.groups:
            named = enumerate_some([f"{group} ({how})" for group, how in self.groups], limit=_NAMED)
            reasons.append(f"consumer groups use it: {named}")
        if self.unknown:
            named = enumerate_some(list(self.unknown), limit=_NAMED)
            reasons.append(f"it is not known whether it is used: {named}")
        return "; ".join(reasons) or None


def leaders_of(topic: TopicView) -> dict[int, list[int]]:
    """Partitions by the broker that leads them; -1: nobody does."""
    led: dict[int, list[int]] = {}
    for partition in topic.partitions:
        led.setdefault(partition.leader, []).append(partition.partition)
    return led


def coordinators(view: ClusterView) -> tuple[tuple[int, int], ...]:
    """Who coordinates groups: if that changes while brokers are asked, a group may be missed."""
    topic = view.topics.get(GROUP_METADATA_TOPIC)
    return () if topic is None else tuple((p.leader, p.leader_epoch) for p in topic.partitions)


def blind_spots(topic: TopicView, view: ClusterView) -> tuple[str, ...]:
    """What no broker can be asked about now."""
    spots = []
    leaderless = _leaderless(topic)
    if leaderless:
        spots.append(f"partitions without a leader: {leaderless}")
    problem = problem_of(view, GROUP_METADATA_TOPIC)
    if problem is not None:
        spots.append(f"consumer groups have no coordinator that is known: {problem}")
    offsets = view.topics.get(GROUP_METADATA_TOPIC)
    if offsets is not None and (lost := _leaderless(offsets)):
        spots.append(
            f"consumer groups have no coordinator: {GROUP_METADATA_TOPIC} has partitions without "
            f"a leader: {lost}"
        )
    return tuple(spots)


def _leaderless(topic: TopicView) -> str:
    return _listed(p.partition for p in topic.partitions if not p.has_leader)


def _listed(indexes: Iterable[int]) -> str:
    return enumerate_some([str(index) for index in indexes], limit=_NAMED)

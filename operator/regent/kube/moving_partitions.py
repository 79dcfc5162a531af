"""Which partitions of the cluster are being reassigned, by whomever, kept up to date by the topics
that change."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping

from regent.admin.commands import AlterPartitionReassignments, ReassignTopic, ResourceCommand
from regent.controller.view import ClusterView, PartitionView
from regent.model.partition import TopicPartition
from regent.reconcile.reassignments.request import SentMove
from regent.reconcile.reassignments.stages import find_partition


class MovingPartitions:
    """What moves now, and what was sent and does not show in the view yet.

    What was sent for one resource counts for the others, too: together they keep the limits.

    Attributes:
        changes: How often something began to move, or did not any more.
        on_room: Called when moves that took up room were refused. No change of the cluster says so.
    """

    def __init__(self) -> None:
        self._by_topic: dict[str, dict[TopicPartition, PartitionView]] = {}
        self._sent: dict[TopicPartition, SentMove] = {}
        self._unanswered: dict[TopicPartition, float] = {}
        self.changes = 0
        self.on_room: list[Callable[[], None]] = []

    @property
    def partitions(self) -> Mapping[TopicPartition, PartitionView]:
        """Partitions that the view shows as being reassigned."""
        return {tp: each for topic in self._by_topic.values() for tp, each in topic.items()}

    def sent(self, *, at: float) -> Mapping[TopicPartition, SentMove]:
        """What was sent, until it shows or should have shown at this time. It should not before it
        is answered: commands wait for others, and for ZooKeeper."""
        for tp, settle_s in self._unanswered.items():
            each = self._sent.get(tp)
            if each is not None and each.until <= at:
                self._sent[tp] = dataclasses.replace(each, until=at + settle_s)
        self._sent = {tp: each for tp, each in self._sent.items() if each.until > at}
        return self._sent

    def elsewhere(self, topic: str, *, at: float) -> int:
        """How many partitions of other topics move, or were sent."""
        moving = sum(len(each) for name, each in self._by_topic.items() if name != topic)
        sent = sum(
            tp.topic != topic and tp not in self._by_topic.get(tp.topic, ())
            for tp in self.sent(at=at)
        )
        return moving + sent

    def send(self, moves: Mapping[TopicPartition, SentMove]) -> None:
        """These are about to be sent."""
        self._sent.update(moves)

    @contextlib.contextmanager
    def sending(
        self,
        commands: Iterable[ResourceCommand],
        view: ClusterView,
        *,
        settle_s: float,
        now: Callable[[], float],
    ) -> Iterator[None]:
        """Commands are being sent and answered in this context. What they move counts at once,
        before anything is awaited, so the next request sees it; if nothing comes of sending, it
        does not any more.

        Args:
            settle_s: How long after the answer a move may take to show.
            now: Returns the present, in monotonic seconds.
        """
        targets = targets_of(commands)
        moves = sent_moves(targets, view, until=now() + settle_s)
        self.send(moves)
        self._unanswered |= dict.fromkeys(moves, settle_s)
        try:
            yield
            until = now() + settle_s
            self.send(
                {
                    tp: dataclasses.replace(each, until=until)
                    for tp, each in moves.items()
                    if tp in self._sent
                }
            )
        except BaseException:  # also a cancellation
            self.take_back(targets)
            raise
        finally:
            for tp in moves:
                self._unanswered.pop(tp, None)

    def take_back(self, partitions: Iterable[TopicPartition]) -> None:
        """These were refused: there may be room for others now."""
        if self._forget(partitions):
            for react in self.on_room:
                react()

    def _forget(self, partitions: Iterable[TopicPartition]) -> bool:
        """Whether something of that counted."""
        counted = [tp for tp in partitions if tp in self._sent]
        for tp in counted:
            del self._sent[tp]
        return bool(counted)

    def see_topics(self, view: ClusterView, topics: frozenset[str]) -> bool:
        """Take in topics that have changed; whether something moves now, or does not any more."""
        before = {tp for topic in topics for tp in self._by_topic.get(topic, ())}
        for topic in topics:
            moving = _moving_of(view, topic)
            if moving:
                self._by_topic[topic] = moving
            else:
                self._by_topic.pop(topic, None)
        after = {tp for topic in topics for tp in self._by_topic.get(topic, ())}
        shown = [
            tp for tp, each in self._sent.items() if tp.topic in topics and _shows(view, tp, each)
        ]
        self._forget(shown)
        is_news = bool(shown) or before != after
        self.changes += is_news
        return is_news

    def see_all(self, view: ClusterView) -> None:
        """Everything may have changed."""
        self._by_topic = {
            name: moving for name in view.topics if (moving := _moving_of(view, name))
        }


class MoveNews:
    """Whether something has begun to move, or does not any more, for one of several readers."""

    def __init__(self, moving: MovingPartitions) -> None:
        self._moving = moving
        self._seen = moving.changes

    def take(self) -> bool:
        """Whether it has since the last call."""
        seen, self._seen = self._seen, self._moving.changes
        return seen != self._seen

    def see_topics(self, view: ClusterView, topics: frozenset[str]) -> bool:
        """Take in topics that have changed; whether that, or what others took in since the last
        call, is news. What has arrived leaves room for other moves."""
        self._moving.see_topics(view, topics)
        return self.take()


def targets_of(
    commands: Iterable[ResourceCommand],
) -> dict[TopicPartition, tuple[int, ...] | None]:
    """Replicas that commands give partitions; None: they are to stay where they were."""
    targets: dict[TopicPartition, tuple[int, ...] | None] = {}
    for command in commands:
        match command:
            case AlterPartitionReassignments():
                targets.update(command.targets)
            case ReassignTopic():
                targets.update(command.by_partition)
            case _:
                pass
    return targets


def sent_moves(
    targets: Mapping[TopicPartition, tuple[int, ...] | None], view: ClusterView, *, until: float
) -> dict[TopicPartition, SentMove]:
    """What a command sets in motion, as far as the view knows the partitions.

    Args:
        targets: Replicas that partitions are to have; None: they are to stay where they were.
        until: Monotonic seconds until which it is taken for under way.
    """
    sent: dict[TopicPartition, SentMove] = {}
    for tp, target in targets.items():
        topic = view.topics.get(tp.topic)
        partition = None if topic is None else find_partition(topic, tp.partition)
        if partition is not None and target is not None:
            sent[tp] = SentMove(
                target=target,
                copies=tuple(b for b in target if b not in partition.replicas),
                leader=partition.leader,
                until=until,
            )
    return sent


def _shows(view: ClusterView, tp: TopicPartition, sent: SentMove) -> bool:
    """Whether a partition is where it was sent, or on its way there."""
    topic = view.topics.get(tp.topic)
    partition = None if topic is None else find_partition(topic, tp.partition)
    if partition is None:
        return True  # there is nothing any more that could move
    return partition.target_replicas == sent.target


def _moving_of(view: ClusterView, name: str) -> dict[TopicPartition, PartitionView]:
    topic = view.topics.get(name)
    return {
        TopicPartition(name, each.partition): each
        for each in (() if topic is None else topic.partitions)
        if each.is_being_reassigned
    }

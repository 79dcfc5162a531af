"""Which batches of leadership a broker has answered."""

from __future__ import annotations

from typing import Any

from regent.model.partition import TopicPartition
from regent.protocol.metadata_updates import SharedMetadata
from regent.protocol.pending_requests import PendingRequests
from tests.simulation.channel_history import RECEIVER
from tests.unit.protocol.test_pending_requests import A0, A1, B0, DELETE, batch


class Told:
    """What waits for a broker, and its answers."""

    def __init__(self, *, max_partitions: int = 1_000) -> None:
        self._shared = SharedMetadata(max_partitions=max_partitions)
        self.pending = PendingRequests(RECEIVER, shared=self._shared)

    def add(self, number: int, of: tuple[TopicPartition, ...] = (A0,), **changes: Any) -> None:
        made = batch(*of, **changes)
        self.pending.add(made, self._shared.of(made), number)

    def oldest(self) -> int | None:
        return self.pending.oldest_unanswered


def test_a_batch_is_unanswered_until_its_answer_was_read() -> None:
    told = Told()
    assert told.oldest() is None
    told.add(3)
    assert told.oldest() == 3, "it waits"
    told.pending.take()
    assert told.oldest() == 3, "it is on its way"
    told.pending.answers.answered()
    assert told.oldest() == 3, "who reads it may find a refusal"
    assert told.pending.answers.has_unread
    told.pending.answers.read()
    assert told.oldest() is None


def test_what_comes_meanwhile_is_of_its_own() -> None:
    told = Told()
    told.add(3)
    told.pending.take()
    told.add(4)
    told.add(5)
    told.pending.answers.answered()
    told.pending.answers.read()
    assert told.oldest() == 4


def test_answers_that_nobody_reads_keep_the_oldest_batch() -> None:
    told = Told()
    for number in (3, 4):
        told.add(number)
        while told.pending:
            told.pending.take()
        told.pending.answers.answered()
    assert told.oldest() == 3


def test_a_part_of_what_waits_answers_no_batch() -> None:
    told = Told(max_partitions=1)
    told.add(1)
    told.pending.take()  # the first one is sent whole, however large
    told.pending.answers.answered()
    told.pending.answers.read()
    told.add(3, of=(A1, B0))
    told.pending.take()  # an update of what was sent before has its turn
    told.pending.take()
    told.pending.answers.answered()
    told.pending.answers.read()
    assert told.oldest() == 3


def test_metadata_alone_is_no_leadership() -> None:
    told = Told()
    told.add(3, leadership=False)
    assert told.oldest() is None


def test_leadership_of_what_is_deleted_waits_for_no_answer() -> None:
    told = Told()
    told.add(3)
    told.add(4, of=(), stops={A0: DELETE})
    assert told.oldest() is None
    told.add(5, of=(A1,))
    assert told.oldest() == 5

"""Which batches of leadership and of metadata a broker has answered."""

from __future__ import annotations

from typing import Any

from regent.model.partition import TopicPartition
from regent.protocol.control_requests import UpdateMetadataRequest
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

    def answer(self, *, is_accepted: bool = True) -> None:
        """Take the requests up to the next UpdateMetadata, which the broker answers."""
        while not isinstance(self.pending.take(), UpdateMetadataRequest):
            pass
        self.pending.metadata.answered(is_accepted=is_accepted)

    def oldest_metadata(self) -> int | None:
        return self.pending.metadata.oldest


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


def test_leadership_of_what_is_deleted_waits_for_no_answer() -> None:
    told = Told()
    told.add(3)
    told.add(4, of=(), stops={A0: DELETE})
    assert told.oldest() is None
    told.add(5, of=(A1,))
    assert told.oldest() == 5


def known(*, max_partitions: int = 1_000) -> Told:
    """A broker that has acknowledged batch 1."""
    told = Told(max_partitions=max_partitions)
    told.add(1)
    told.answer()
    return told


def test_metadata_is_unknown_until_the_first_acknowledgement() -> None:
    told = Told()
    assert told.oldest_metadata() == 0
    told.add(3)
    assert told.oldest_metadata() == 0
    told.answer()
    assert told.oldest_metadata() is None


def test_metadata_is_unacknowledged_while_it_waits_and_while_it_is_in_flight() -> None:
    told = known()
    told.add(3, leadership=False)
    assert told.oldest_metadata() == 3
    told.pending.take()
    told.add(4, leadership=False)
    assert told.oldest_metadata() == 3
    told.pending.metadata.answered(is_accepted=True)
    assert told.oldest_metadata() == 4
    told.answer()
    assert told.oldest_metadata() is None


def test_metadata_in_parts_is_acknowledged_with_the_last_part() -> None:
    told = known(max_partitions=1)
    told.add(3, of=(A0, A1), leadership=False, deleted=True)
    told.add(4, of=(B0,), leadership=False)
    for oldest in (3, 3, 4):
        assert told.oldest_metadata() == oldest
        told.answer()
    assert told.oldest_metadata() is None


def test_list_of_brokers_alone_is_acknowledged() -> None:
    told = known()
    told.add(3, of=(), leadership=False)
    told.add(4, leadership=False)
    assert told.oldest_metadata() == 3
    told.answer()
    assert told.oldest_metadata() is None


def test_metadata_that_is_never_empty_is_acknowledged_batch_by_batch() -> None:
    """As by leaders that change their ISRs all the time."""
    told = known()
    told.add(2)
    for number in range(3, 30):
        told.pending.take()
        told.add(number)
        told.pending.metadata.answered(is_accepted=True)
    assert (told.oldest_metadata() or 0) >= 27


def test_refused_metadata_is_unknown_until_the_next_acknowledgement() -> None:
    told = known()
    told.add(3, leadership=False)
    told.answer(is_accepted=False)
    assert told.oldest_metadata() == 0
    told.add(4, leadership=False)
    told.answer()
    assert told.oldest_metadata() is None


def test_merged_metadata_is_acknowledged_at_once() -> None:
    told = known()
    for number in (3, 4, 5):
        told.add(number, leadership=False)
    told.answer()
    assert told.oldest_metadata() is None

"""Refused requests that are sent again: when, how often, and in which form.

Kept from a refusal until the broker accepts or its life ends. The waits double from attempt to
attempt, and the number of attempts is bounded. Times are those of a clock that may be set: a wait
never takes longer than it was to take when it began.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

import msgspec

from regent.model.partition import TopicPartition

METADATA: Final = None
"""The UpdateMetadata of a broker, beside the partitions of its LeaderAndIsr."""

Subject = TopicPartition | None
"""A partition, or :data:`METADATA`."""


class RetryPolicy(NamedTuple):
    """How often something is tried again.

    Attributes:
        backoff_ms: Wait before the first attempt; it doubles with each.
        attempts: The most that are made.
    """

    backoff_ms: int
    attempts: int


class Form(NamedTuple):
    """In which form something is sent again.

    Attributes:
        is_new: Whether the replica is new on its broker, as the refused request said.
        needs_epoch: Whether only a new leader epoch helps.
        is_unsure: Whether the broker may have done a part of what it refused, so that it takes the
            same epoch for known: a new one has to follow its first acceptance.
    """

    is_new: bool = False
    needs_epoch: bool = False
    is_unsure: bool = False


class Repair(msgspec.Struct):
    """What has become of one refusal.

    Attributes:
        attempts: How many have been made.
        due_ms: When the next one is, in milliseconds since the epoch. None: an answer is awaited,
            or there is no next one.
        wait_ms: How long before that the refusal came.
        is_given_up: Whether the last attempt was refused, too.
        is_confirmed: Whether the broker has accepted the same epoch again, and now gets a new one.
            A refusal of that one counts as one more.
    """

    form: Form
    attempts: int = 0
    due_ms: int | None = None
    wait_ms: int = 0
    is_given_up: bool = False
    is_confirmed: bool = False

    def left_ms(self, now_ms: int) -> int | None:
        """Time until the next attempt, in milliseconds; None if there is none to wait for.

        Before the wait began it cannot be: the clock was set back, and the attempt is due.
        """
        if self.due_ms is None:
            return None
        left_ms = self.due_ms - now_ms
        return left_ms if 0 <= left_ms <= self.wait_ms else 0


_NOTHING: Final[Mapping[Subject, Repair]] = MappingProxyType({})


class RefusalRepairs:
    """Repairs by broker and by what it refuses."""

    def __init__(self) -> None:
        self._repairs: dict[int, dict[Subject, Repair]] = {}

    def on_broker(self, broker_id: int) -> Mapping[Subject, Repair]:
        """What a broker has refused, and not accepted since."""
        return self._repairs.get(broker_id, _NOTHING)

    def refused(
        self, broker_id: int, subjects: Mapping[Subject, Form], *, now_ms: int, policy: RetryPolicy
    ) -> list[Subject]:
        """A broker has refused something. Returns what is given up now."""
        repairs = self._repairs.setdefault(broker_id, {})
        given_up: list[Subject] = []
        for what, form in subjects.items():
            repair = repairs.get(what)
            if repair is None:
                repair = repairs[what] = Repair(form)
            elif repair.due_ms is not None or repair.is_given_up:
                continue
            else:
                before = repair.form
                repair.form = Form(
                    before.is_new or form.is_new,
                    form.needs_epoch,
                    before.is_unsure or form.is_unsure,
                )
                repair.is_confirmed = False
            if repair.attempts < policy.attempts:
                repair.wait_ms = policy.backoff_ms * 2**repair.attempts
                repair.due_ms = now_ms + repair.wait_ms
            else:
                repair.is_given_up = True
                given_up.append(what)
        return given_up

    def accepted(self, broker_id: int, subjects: Iterable[Subject]) -> dict[TopicPartition, Form]:
        """A broker has accepted something. Returns what needs a new leader epoch now."""
        repairs = self._repairs.get(broker_id)
        if not repairs:
            return {}
        unsure: dict[TopicPartition, Form] = {}
        for what in subjects:
            repair = repairs.get(what)
            if repair is None:
                continue
            if what is not METADATA and repair.form.is_unsure and not repair.is_confirmed:
                repair.is_confirmed, repair.due_ms = True, None
                unsure[what] = repair.form
            else:
                del repairs[what]
        if not repairs:
            del self._repairs[broker_id]
        return unsure

    def take_due(
        self, now_ms: int, *, is_refused: Callable[[int, Subject], bool]
    ) -> dict[int, dict[Subject, Form]]:
        """What is to be tried now, by broker; its answer is awaited from now on.

        Args:
            is_refused: Whether a broker still refuses something. The rest is forgotten.
        """
        due: dict[int, dict[Subject, Form]] = {}
        for broker_id, repairs in list(self._repairs.items()):
            for what, repair in list(repairs.items()):
                if not (repair.is_confirmed or is_refused(broker_id, what)):
                    del repairs[what]
                elif repair.left_ms(now_ms) == 0:
                    repair.due_ms = None
                    repair.attempts += 1
                    due.setdefault(broker_id, {})[what] = repair.form
            if not repairs:
                del self._repairs[broker_id]
        return due

    def next_due_in_ms(self, now_ms: int) -> int | None:
        """Time until the next attempt, in milliseconds; None if none is planned."""
        return min(
            (
                left_ms
                for repairs in self._repairs.values()
                for repair in repairs.values()
                if (left_ms := repair.left_ms(now_ms)) is not None
            ),
            default=None,
        )

    def forget_broker(self, broker_id: int) -> None:
        """The broker's life has ended."""
        self._repairs.pop(broker_id, None)

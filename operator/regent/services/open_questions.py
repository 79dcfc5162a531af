"""Questions to the broker that is the controller, beside the turns of client mode.

A controller may take long to answer, or hang. Only what is asked waits for that: a coroutine of the
core that has come to a question is left there, and goes on in the turn after the answer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

from regent.admin.commands import Outcome
from regent.controller.active_controller import ActiveController
from regent.controller.commands import Command
from regent.controller.effects import AskElections, AskReassignments
from regent.runtime.interpreter import Interpreter, Process
from regent.steering.commands import is_asked
from regent.steering.steering import refused
from regent.zk_data.effects import Effect

QUESTIONS: Final = (AskReassignments, AskElections)

MAX_QUESTIONS: Final = 8
"""Submissions that may wait for the controller. Whoever makes more has given up on the others."""

Reply = Callable[[Sequence[Outcome]], None]


class Submission(NamedTuple):
    """Commands that wait to be carried out."""

    commands: Sequence[Command]
    reply: Reply


class _Question(NamedTuple):
    """A submission that waits for the controller.

    Attributes:
        active: What is known of the cluster that it was decided by.
    """

    submission: Submission
    process: Process
    answer: asyncio.Task[Any]
    active: ActiveController | None


class OpenQuestions:
    """All that are open. Belongs to one event loop.

    Args:
        interpreter: Performs effects.
        on_answer: Called when an answer has come.
        active: Returns what is known of the cluster now.
    """

    def __init__(
        self,
        interpreter: Interpreter,
        *,
        on_answer: Callable[[], None],
        active: Callable[[], ActiveController | None],
    ) -> None:
        self._interpreter = interpreter
        self._on_answer = on_answer
        self._active = active
        self._open: list[_Question] = []

    def __len__(self) -> int:
        return len(self._open)

    @property
    def has_answers(self) -> bool:
        """Whether somebody waits for :meth:`go_on`."""
        return any(each.answer.done() for each in self._open)

    async def begin(self, submission: Submission, process: Process) -> None:
        """Carry commands out, up to the first question."""
        if len(self._open) >= MAX_QUESTIONS and any(map(is_asked, submission.commands)):
            process.close()
            why = f"the controller has not answered {MAX_QUESTIONS} earlier questions"
            submission.reply(refused(submission.commands, why))
            return
        self._ask(submission, process, await self._interpreter.advance(process, until=QUESTIONS))

    async def go_on(self) -> None:
        """Go on with what has been answered."""
        answered = [each for each in self._open if each.answer.done()]
        for each in answered:
            if each.active is not self._active():
                self._end(each, "the cluster was read anew meanwhile")
                continue
            failure = each.answer.exception()
            if failure is not None and not isinstance(failure, Exception):
                raise failure
            result = None if failure is not None else each.answer.result()
            effect = await self._interpreter.advance(each.process, result, failure, until=QUESTIONS)
            self._open.remove(each)
            self._ask(each.submission, each.process, effect)

    def refuse(self, why: str) -> None:
        """Ask nothing any more; whoever waits learns why."""
        for each in list(self._open):
            self._end(each, why)

    def _ask(self, submission: Submission, process: Process, effect: Effect[Any] | None) -> None:
        if effect is None:
            return  # it has ended, and whoever waits has the answer
        answer = asyncio.create_task(self._interpreter.perform(effect), name="question")
        answer.add_done_callback(self._answered)
        self._open.append(_Question(submission, process, answer, self._active()))

    def _answered(self, answer: asyncio.Task[Any]) -> None:
        if not answer.cancelled():
            answer.exception()  # it counts as retrieved
            self._on_answer()

    def _end(self, question: _Question, why: str) -> None:
        self._open.remove(question)
        question.answer.cancel()
        question.process.close()
        question.submission.reply(refused(question.submission.commands, why))

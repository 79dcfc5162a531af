"""Where the outcomes of commands go."""

from __future__ import annotations

import concurrent.futures
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from regent.admin.commands import Outcome
from regent.controller.commands import not_controller
from regent.controller.events import ControllerEvent, requests_of


@dataclass(slots=True, eq=False)
class CommandReply:
    """Called with the outcomes, in the thread of the controller.

    Attributes:
        is_given_up: Whether nobody waits any more. Commands that have not begun by then are not
            carried out: whoever asked for them goes on without, and may want the opposite by now.
    """

    future: concurrent.futures.Future[Any]
    is_given_up: bool = False

    def __call__(self, outcomes: Sequence[Outcome]) -> None:
        """Answer once. Only the controller's thread does, without cancellation: so nothing
        races."""
        if not self.future.done():
            self.future.set_result(outcomes)


def refuse_if_given_up(event: ControllerEvent) -> bool:
    """Whether an event is a request with commands for which nobody waits any more."""
    requests = requests_of(event)
    if not requests or not all(is_given_up(each.reply_to) for each in requests):
        return False
    for each in requests:
        each.reply_to(not_controller(each.commands))
    return True


def is_given_up(reply_to: object) -> bool:
    """Whether nobody waits for an answer any more. Others than those of commands are awaited."""
    return isinstance(reply_to, CommandReply) and reply_to.is_given_up

"""Who leads a partition whose reassignment is about to end."""

from __future__ import annotations

from typing import Final

from regent.controller.reassignment.algebra import is_complete
from regent.controller.transitions.election import Elected, ElectionInput, ReassignElection


class CompletionElection(ReassignElection):
    """The leader stays if it is a target replica and live; else the first target replica that is.

    Either way the leader epoch rises, so that the leader learns of its new replicas. There is no
    result as long as a target replica is out of sync: the leader may have dropped it just now.
    """

    name = "completion"

    def elect(self, given: ElectionInput) -> Elected | None:
        if not is_complete(given.assignment, given.isr):
            return None
        if given.leader in given.assignment.target_replicas and given.leader in given.live:
            return Elected(given.leader, given.isr, given.recovery_state)
        return super().elect(given)


COMPLETION: Final = CompletionElection()

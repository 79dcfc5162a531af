"""Rounds of confirmation: which of the known objects has the stream of kopf not shown?

kopf lists and watches by itself. What is deleted after Regent's list and before kopf's is in no
event. But kopf gives one event without a type for each object of its list: an object that gets none
was deleted, or is a little late. So there is a round for every list of kopf, in each scope (a
namespace that is watched, or ``ALL_NAMESPACES``):

* It begins with the stream, and again with an event without a type for an object that the round has
  seen already, or after the round is over: then kopf has listed anew.
* Once kopf's list has arrived and a short while has passed, the known objects that no event has
  confirmed are to be looked up. That is done by a list that is later than kopf's: what it shows
  will be shown by the watch, too, whenever it changes, and what it does not show is gone. The round
  is over.
* If nothing arrives, they are looked up as well. But then kopf's list may be still to come, and the
  round goes on, with growing pauses.

What no event shows cannot be found: that kopf has listed anew and its list is empty, or has only
objects that are new to a round that is not over.

Pure: events and times come in, objects to look up go out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from regent.resources.kind import ALL_NAMESPACES


@dataclass(slots=True, kw_only=True)
class _Round:
    """A round that is not over.

    Attributes:
        due_at: When objects are to be looked up.
        pause_s: From the next look-up to the one after it, if nothing arrives.
        has_list: Whether an event has shown that kopf's list was made.
        confirmed: The uids of all objects that events have shown.
    """

    due_at: float
    pause_s: float
    has_list: bool = False
    confirmed: set[str] = field(default_factory=set)


class ConfirmationRounds:
    """The rounds of one kind. Times are seconds of any one clock.

    Events of one object have to come in their order, and those of a list of kopf before those of
    its next one.

    Args:
        settled_after_s: A list of kopf has arrived when it has shown nothing for this long.
        silent_after_s: If nothing arrives, objects are looked up after this time, and again after
            pauses that double.
        pause_max_s: The longest of these pauses.
    """

    def __init__(
        self, *, settled_after_s: float, silent_after_s: float, pause_max_s: float
    ) -> None:
        self._settled_after_s = settled_after_s
        self._silent_after_s = silent_after_s
        self._pause_max_s = pause_max_s
        self._rounds: dict[str, _Round | None] = {}

    @property
    def due_at(self) -> float | None:
        """When :meth:`check_out` has something to do next; None: after an event at the earliest."""
        return min((round_.due_at for round_ in self._rounds.values() if round_), default=None)

    @property
    def is_over(self) -> bool:
        """Whether every round that has begun is over."""
        return bool(self._rounds) and all(round_ is None for round_ in self._rounds.values())

    def begin(self, scopes: Iterable[str], *, at: float) -> None:
        """A stream begins that shows these scopes, and no other goes on."""
        self._rounds = {scope: self._silent_round(at) for scope in scopes}

    def take(self, type_: str | None, *, namespace: str, uid: str, at: float) -> None:
        """Take in an event of the stream.

        Args:
            type_: None: from a list of kopf.
        """
        scope = self._scope_of(namespace)
        if scope is None:
            return
        round_ = self._rounds[scope]
        if type_ is None and (round_ is None or uid in round_.confirmed):
            round_ = self._rounds[scope] = self._silent_round(at)
        if round_ is None:
            return
        if type_ is None or not round_.has_list:
            round_.has_list, round_.due_at = True, at + self._settled_after_s
        round_.confirmed.add(uid)

    def check_out(
        self, known: Iterable[tuple[str, str]], *, at: float
    ) -> Mapping[str, frozenset[str]]:
        """The objects to be looked up now: uids by scope. Scopes without any are not among them.

        Args:
            known: Namespace and uid of all known objects.
        """
        due = {
            scope: round_
            for scope, round_ in self._rounds.items()
            if round_ is not None and round_.due_at <= at
        }
        if not due:
            return {}
        unconfirmed: dict[str, set[str]] = {}
        for namespace, uid in known:
            scope = self._scope_of(namespace)
            if scope in due and uid not in due[scope].confirmed:
                unconfirmed.setdefault(scope, set()).add(uid)
        for scope, round_ in due.items():
            if round_.has_list:
                self._rounds[scope] = None
            else:
                round_.due_at = at + round_.pause_s
                round_.pause_s = min(2 * round_.pause_s, self._pause_max_s)
        return {scope: frozenset(uids) for scope, uids in unconfirmed.items()}

    def not_looked_up(self, scope: str, *, at: float) -> None:
        """Looking up what :meth:`check_out` has returned has failed: it is due again."""
        if scope in self._rounds and self._rounds[scope] is None:
            self._rounds[scope] = _Round(
                due_at=at + self._silent_after_s, pause_s=self._silent_after_s, has_list=True
            )

    def _silent_round(self, at: float) -> _Round:
        return _Round(
            due_at=at + self._silent_after_s,
            pause_s=min(2 * self._silent_after_s, self._pause_max_s),
        )

    def _scope_of(self, namespace: str) -> str | None:
        """The scope that shows a namespace, None if there is none."""
        if ALL_NAMESPACES in self._rounds:
            return ALL_NAMESPACES
        return namespace if namespace in self._rounds else None

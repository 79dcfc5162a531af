"""Defects in what concerns elections on request and the balance of leaders."""

from __future__ import annotations

from typing import Any

import pytest

from regent.admin.commands import ElectionType
from regent.controller.active_controller import ActiveController
from regent.controller.elections import (
    auto_leader_balance,
    leader_election,
    preferred_replica_election,
)
from regent.controller.state.cluster_state import ClusterState
from regent.controller.state.context import ControllerContext
from regent.controller.transitions import election
from regent.zk_data.operations import Delete
from tests.simulation.mutants.registry import defect, exists_unwatched


@defect(caught_by="nobody elects preferred leaders")
def requests_for_leaders_stay(patch: pytest.MonkeyPatch) -> None:
    """A request for preferred leaders is carried out, and not removed."""
    patch.setattr(
        preferred_replica_election, "Delete", lambda *_, **__: Delete("/nothing", 0, True)
    )


@defect(caught_by="nobody elects preferred leaders|not led by its preferred")
def requests_for_leaders_not_watched(patch: pytest.MonkeyPatch) -> None:
    """Only a failover finds a request for preferred leaders."""
    patch.setattr(preferred_replica_election, "exists_permitted", exists_unwatched)


@defect(caught_by="Event failed")
def never_led_partitions_break_elections(patch: pytest.MonkeyPatch) -> None:
    """A partition without leadership is asked for its leader, as upstream does."""

    def refusal(context: ControllerContext, tp: Any, election_type: Any) -> Any:
        if context.cluster.assignment(tp) is not None:
            context.cluster.leadership[tp]
        return original(context, tp, election_type)

    original = leader_election._refusal
    patch.setattr(leader_election, "_refusal", refusal)


@defect(caught_by="from outside the ISR|the preferred replica never led")
def every_election_may_be_unclean(patch: pytest.MonkeyPatch) -> None:
    """Who asks for preferred leaders gets any."""
    patch.setitem(
        leader_election._STRATEGIES, ElectionType.PREFERRED, election.OFFLINE_ALLOW_UNCLEAN
    )


@defect(caught_by="leaders are out of balance")
def balance_checked_once(patch: pytest.MonkeyPatch) -> None:
    """The timer of the balance is not armed again."""

    async def check(active: ActiveController) -> None:
        await leader_election.elect_leaders(
            active, auto_leader_balance.movable_leaders(active.context, 10), ElectionType.PREFERRED
        )

    patch.setattr(auto_leader_balance, "process_auto_preferred_replica_leader_election", check)


@defect(caught_by="imbalanced, not")
def balance_not_followed(patch: pytest.MonkeyPatch) -> None:
    """The balance of leaders is that of the failover for ever."""
    patch.setattr(ClusterState, "_note_partitions", lambda *_: None)

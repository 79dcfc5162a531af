"""Defects in what concerns a take-over from a replica that is suspected, or that leaves."""

from __future__ import annotations

from typing import Any

import pytest

from regent.controller.term import controller_election, life_cycle
from regent.controller.term.take_over import Predecessors, find_predecessors
from regent.replicas.own_pauses import OwnPauses
from regent.zk_data import paths
from regent.zk_data.effects import ReadData
from regent.zk_data.operations import SetData
from tests.simulation.mutants.registry import defect


@defect(caught_by="controller epoch")
def elections_not_conditional(patch: pytest.MonkeyPatch) -> None:
    """Whoever has been elected since the nodes were read is deposed unseen."""
    patch.setattr(controller_election, "SetData", lambda path, data, _version: SetData(path, data))


@defect(caught_by="nobody has won|both reign")
def lost_elections_held_to_be_won(patch: pytest.MonkeyPatch) -> None:
    """The owner of the node is not read after a lost answer."""

    async def find(*_: Any) -> int:
        (node,) = await ReadData([paths.CONTROLLER_EPOCH])
        assert node is not None
        return node.version

    patch.setattr(controller_election, "_find_own", find)


@defect(caught_by="deposes broker|deposes nobody")
def brokers_deposed(patch: pytest.MonkeyPatch) -> None:
    """A suspicion is enough, whoever leads."""
    patch.setattr(Predecessors, "include", lambda _self, _holder: True)


@defect(caught_by="though another replica is next")
def places_left(patch: pytest.MonkeyPatch) -> None:
    """Those who stand before it in the queue go on to do so: they will take it back."""

    async def find(*args: Any) -> Predecessors | None:
        found = await find_predecessors(*args)
        return None if found is None else Predecessors(found.absent, (), found.registered)

    patch.setattr(life_cycle, "find_predecessors", find)


@defect(caught_by="after a pause")
def pauses_not_noticed(patch: pytest.MonkeyPatch) -> None:
    """Who has slept goes on to send."""
    patch.setattr(OwnPauses, "looked", lambda _self, _now: None)

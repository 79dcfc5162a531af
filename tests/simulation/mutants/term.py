"""Defects in what concerns terms: fence, resignation, failover, reports of former terms."""

from __future__ import annotations

import sys
from typing import Any

import msgspec
import pytest

from regent.controller import kafka_controller
from regent.controller.active_controller import ActiveController
from regent.controller.brokers import answers
from regent.controller.events import ChannelEvent
from regent.controller.term import failover
from regent.controller.term.life_cycle import LifeCycle
from regent.controller.transitions.broker_request_batch import ControllerBrokerRequestBatch
from regent.controller.transitions.partition_state_znodes import epoch_guard
from regent.zk_data import paths
from regent.zk_data.operations import ANY_VERSION, Check
from tests.simulation.mutants.registry import defect


@defect(caught_by="writes without the fence")
def no_fence(patch: pytest.MonkeyPatch) -> None:
    """Writes hold whoever is the controller."""
    for module in [m for name, m in sys.modules.items() if name.startswith("regent.controller")]:
        if getattr(module, "epoch_guard", None) is epoch_guard:
            patch.setattr(
                module, "epoch_guard", lambda _: Check(paths.CONTROLLER_EPOCH, ANY_VERSION)
            )


@defect(caught_by="active controllers|brokers are|leadership are|obeys")
def no_resignation(patch: pytest.MonkeyPatch) -> None:
    """A deposed controller stays the controller."""

    async def stay(self: LifeCycle) -> None:
        pass

    patch.setattr(LifeCycle, "resign", stay)


@defect(caught_by="Event failed")
def reports_of_the_past_count(patch: pytest.MonkeyPatch) -> None:
    """A channel that failed in a former term is taken for one of this term."""

    async def process(active: ActiveController, event: Any) -> Any:
        if isinstance(event, ChannelEvent):
            event = msgspec.structs.replace(event, controller_epoch=active.context.term.epoch)
        return await original(active, event)

    original = kafka_controller._dispatch_active
    patch.setattr(kafka_controller, "_dispatch_active", process)


@defect(caught_by="a is not deleted", story="deletion, and an answer comes late")
def answers_of_the_past_count(patch: pytest.MonkeyPatch) -> None:
    """An answer to a former term, or of a former life of the broker, is taken for a new one."""

    async def never(*_: Any) -> bool:
        return False

    patch.setattr(answers, "is_of_the_past", never)


@defect(caught_by="obeys|does not host|does not follow|ISR of|differs on")
def brokers_not_announced(patch: pytest.MonkeyPatch) -> None:
    """A failover sends LeaderAndIsr before anybody knows which brokers are alive."""

    class Silent(ControllerBrokerRequestBatch):
        async def send(self) -> None:
            pass

    patch.setattr(failover, "ControllerBrokerRequestBatch", Silent)

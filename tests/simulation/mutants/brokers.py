"""Defects in what concerns brokers: who is alive, what they refuse, their disks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from regent.controller.active_controller import ActiveController
from regent.controller.brokers import answers, broker_changes, refusal_repair
from regent.controller.state.context import ControllerContext
from regent.controller.state.refusals import Refusals
from regent.controller.term import cluster_loading
from regent.zk_data import paths
from regent.zk_data.effects import ReadChildren, ReadData
from tests.simulation.mutants.registry import defect, nothing


@defect(caught_by="brokers are|time is up")
def brokers_not_watched(patch: pytest.MonkeyPatch) -> None:
    """After the first change of the brokers nobody looks any more."""

    def read(read_paths: Sequence[str], watch: bool = False) -> ReadChildren:
        return ReadChildren(read_paths, watch=watch and read_paths != [paths.BROKER_IDS])

    patch.setattr(cluster_loading, "ReadChildren", read)


@defect(caught_by="brokers are|does not host|has .* at|obeys")
def bounces_not_noticed(patch: pytest.MonkeyPatch) -> None:
    """Another life of a broker is taken for the same."""

    async def read(log: Any, **known: Any) -> Any:
        found = await original(log, **known)
        for broker_id, broker in found.items():
            first = seen.setdefault((id(log), broker_id), broker.epoch)
            found[broker_id] = msgspec.structs.replace(broker, epoch=first)
        return found

    seen: dict[tuple[int, int], int] = {}
    original = cluster_loading.read_brokers
    patch.setattr(cluster_loading, "read_brokers", read)


@defect(caught_by="brokers are")
def mended_registration_not_noticed(patch: pytest.MonkeyPatch) -> None:
    """A changed registration concerns only brokers that are known already."""

    async def process(active: ActiveController, broker_id: int) -> None:
        await ReadData([paths.broker_id(broker_id)], watch=True)
        if broker_id in active.context.cluster.brokers:
            await original(active, broker_id)

    original = broker_changes.process_broker_modifications
    patch.setattr(broker_changes, "process_broker_modifications", process)


@defect(caught_by="has no refusal")
def refusals_not_kept(patch: pytest.MonkeyPatch) -> None:
    """What a broker refuses is not written down."""
    patch.setattr(Refusals, "update", lambda *_, **__: {})


@defect(caught_by="keeps a refusal|refusals are")
def refusals_outlive_their_broker(patch: pytest.MonkeyPatch) -> None:
    """A broker that has ended is still said to refuse."""
    patch.setattr(Refusals, "forget_broker", lambda *_: None)


@defect(caught_by="refusals are|has .* at|does not follow", story="a broker refuses for a while")
def refusals_not_repaired(patch: pytest.MonkeyPatch) -> None:
    """What a broker refuses is not sent again."""
    patch.setattr(refusal_repair, "_plan", lambda *_: nothing())


@defect(
    caught_by="has .* at|does not follow|refusals are",
    story="a broker fails at requests for a while",
)
def acceptance_is_enough(patch: pytest.MonkeyPatch) -> None:
    """A broker that accepts what it has refused is taken to have done all of it."""
    patch.setattr(refusal_repair, "_give_new_epochs", lambda *_: nothing())


@defect(caught_by="failed log dir")
def failed_replicas_stay_online(patch: pytest.MonkeyPatch) -> None:
    """A broker's answer that a replica is on a failed log directory is ignored."""
    patch.setattr(answers, "KAFKA_STORAGE_ERROR", -99)


@defect(
    caught_by="online under|partition states are|has no leader|still has strays|without a leader"
)
def failed_log_dirs_outlive_a_restart(patch: pytest.MonkeyPatch) -> None:
    """A broker that was restarted is still held to have failed log directories."""
    patch.setattr(ControllerContext, "set_replicas_on_offline_dirs", lambda *_: None)

"""Defects in what brokers ask of the controller: ISR changes and producer ids."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from regent.controller import events as e
from regent.controller.active_controller import ActiveController
from regent.controller.broker_requests import IsrChange
from regent.controller.partitions import alter_partition, isr_announcements, isr_change_rules
from regent.controller.producer_ids import allocate_producer_ids
from regent.controller.transitions.broker_request_batch import ControllerBrokerRequestBatch
from regent.controller.transitions.partition_state_znodes import StatesWritten
from regent.controller.znodes import overtaken_answer_notes
from regent.model.partition import LeaderAndIsr, TopicPartition
from regent.zk_data import paths
from regent.zk_data.effects import ReadData
from regent.zk_data.producer_ids import BLOCK_SIZE, decode_next_producer_id
from tests.simulation.mutants.registry import defect, nothing


@defect(
    caught_by="has not asked for|which somebody else leads",
    story="a broker asks for a partition that another one leads",
)
def senders_believed(patch: pytest.MonkeyPatch) -> None:
    """Whoever asks for an ISR is taken for the leader, as upstream."""

    def decide(change: IsrChange, *, sender: int, current: LeaderAndIsr, **given: Any) -> Any:
        return original(change, sender=current.leader, current=current, **given)

    original = isr_change_rules.decide
    patch.setattr(alter_partition, "decide", decide)


@defect(caught_by="has not asked for", story="a request of before an ISR change arrives late")
def late_requests_count(patch: pytest.MonkeyPatch) -> None:
    """A change is made whatever the state that it is based on."""

    def decide(change: IsrChange, *, current: LeaderAndIsr, **given: Any) -> Any:
        present = msgspec.structs.replace(change, partition_epoch=current.partition_epoch)
        return original(present, current=current, **given)

    original = isr_change_rules.decide
    patch.setattr(alter_partition, "decide", decide)


@defect(
    caught_by="waits for ever for the ISR",
    story="leaders ask for a follower that is down, by names",
)
def refused_leaders_wait(patch: pytest.MonkeyPatch) -> None:
    """A leader that is refused, and waits for a higher leader epoch, never gets one."""
    patch.setattr(alter_partition, "is_left_waiting", lambda *_, **__: False)


@defect(
    caught_by="waits for ever for the ISR",
    story="a removal is lost with the controller",
)
def overtaken_answers_not_noted(patch: pytest.MonkeyPatch) -> None:
    """What an answer may have cost its leader, successors do not know."""
    patch.setattr(overtaken_answer_notes, "remember", lambda *_, **__: nothing())


@defect(caught_by="written was|which was never written", story="ISR changes, by names")
def granted_without_writing(patch: pytest.MonkeyPatch) -> None:
    """A leader gets what it asks for, and ZooKeeper does not."""

    async def write(_: Any, states: dict[TopicPartition, LeaderAndIsr]) -> StatesWritten:
        written = {
            tp: msgspec.structs.replace(state, partition_epoch=state.partition_epoch + 1)
            for tp, state in states.items()
        }
        return StatesWritten(written, [], {})

    patch.setattr(alter_partition, "write_partition_states", write)


@defect(caught_by="has .* as", story="ISR changes, by names")
def isr_not_announced(patch: pytest.MonkeyPatch) -> None:
    """The leader has its ISR, and nobody else knows of it."""

    class Silent(ControllerBrokerRequestBatch):
        async def send(self) -> None:
            pass

    patch.setattr(isr_announcements, "ControllerBrokerRequestBatch", Silent)


@defect(caught_by="owes answers", story="ISR changes, and the controller resigns, by names")
def requests_forgotten(patch: pytest.MonkeyPatch) -> None:
    """Who asks a controller that has resigned is not answered."""
    patch.setattr(e.AlterPartitionReceived, "refusals", lambda _: ())


@defect(caught_by="which stops", story="the last in sync stops, where leaders ask")
def stopping_leader_stays(patch: pytest.MonkeyPatch) -> None:
    """Where a leader that stops has got a successor, it goes on leading."""
    patch.setattr(alter_partition, "release_again", lambda *_: nothing())


@defect(caught_by="gets producer ids from", story="producer ids")
def one_block_for_all(patch: pytest.MonkeyPatch) -> None:
    """Brokers that wait together get the same producer ids."""

    async def allocate(active: ActiveController, broker_ids: Sequence[int]) -> list[int]:
        first_ids = await original(active, broker_ids)
        return first_ids[:1] * len(first_ids)

    original = allocate_producer_ids._allocate
    patch.setattr(allocate_producer_ids, "_allocate", allocate)


@defect(caught_by="the next ones begin at", story="producer ids")
def ids_given_before_they_are_taken(patch: pytest.MonkeyPatch) -> None:
    """A block is given away that is not written down."""

    async def allocate(_: ActiveController, broker_ids: Sequence[int]) -> list[int]:
        (node,) = await ReadData([paths.PRODUCER_ID_BLOCK])
        next_id = decode_next_producer_id(None if node is None else node.data)
        return [next_id + i * BLOCK_SIZE for i in range(len(broker_ids))]

    patch.setattr(allocate_producer_ids, "_allocate", allocate)

"""What brokers are answered is so: the ISRs are what leaders asked for, nobody else has the ids."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any, NamedTuple

from regent.controller.broker_requests import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
    AlterPartitionRequest,
    AlterPartitionResponse,
    IsrChange,
    IsrChangeResult,
)
from regent.controller.commands import ControlledShutdown
from regent.model.partition import LeaderAndIsr, TopicPartition
from regent.protocol.error_codes import NONE
from regent.zk_data import paths
from regent.zk_data.producer_ids import decode_next_producer_id
from tests.simulation.checkers.observed import Observed
from tests.simulation.trace import require

if TYPE_CHECKING:
    from tests.simulation.driver import RegentProcess
    from tests.simulation.endpoint import BrokerRequest
    from tests.simulation.world import World


class _Wanted(NamedTuple):
    tp: TopicPartition
    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    partition_epoch: int


class BrokerRequestChecker:
    """Follows what brokers ask, and what they are answered."""

    def __init__(self, world: World, seen: Observed) -> None:
        self._world = world
        self._seen = seen
        self._wanted: dict[_Wanted, None] = {}
        self._names: dict[uuid.UUID, str] = {}
        self._blocks: dict[int, str] = {}

    def asked(self, broker_id: int, tp: TopicPartition, change: IsrChange) -> None:
        """A leader asks for an ISR, and may go on asking."""
        epochs = (change.leader_epoch, change.isr, change.partition_epoch)
        self._wanted[_Wanted(tp, broker_id, *epochs)] = None
        if isinstance(change.topic, uuid.UUID):
            self._names[change.topic] = tp.topic

    def check_was_wanted(self, tp: TopicPartition, before: LeaderAndIsr, to: LeaderAndIsr) -> None:
        """A controller changes an ISR within a leader epoch: as the leader has asked, and for
        nothing else."""
        wanted = _Wanted(tp, before.leader, to.leader_epoch, to.isr, before.partition_epoch)
        require(
            wanted in self._wanted,
            f"{tp} is changed to {to}, which its leader of {before} has not asked for",
        )

    def answered(self, process: RegentProcess, request: BrokerRequest, answer: Any) -> None:
        """A process answers a broker."""
        match request:
            case AlterPartitionRequest():
                self._check_isr_changes(process, request, answer)
            case AllocateProducerIdsRequest():
                self._check_producer_ids(process, request, answer)
            case ControlledShutdown():
                (outcome,) = answer
                self._world.orderly_stops.check_answer(process, request, outcome)

    def _check_isr_changes(
        self,
        process: RegentProcess,
        request: AlterPartitionRequest,
        answer: AlterPartitionResponse,
    ) -> None:
        if answer.error_code != NONE:
            require(not answer.results, f"{process} answers an error, and results: {answer}")
            return
        asked = [(change.topic, change.partition) for change in request.changes]
        given = [(result.topic, result.partition) for result in answer.results]
        require(asked == given, f"{process} is asked for {asked} and answers {given}")
        for change, result in zip(request.changes, answer.results, strict=True):
            if result.error_code == NONE:
                self._check_made(process, request.broker_id, change, result)

    def _check_made(
        self, process: RegentProcess, sender: int, change: IsrChange, result: IsrChangeResult
    ) -> None:
        state = result.state
        assert state is not None
        what = f"{process} answers broker {sender} for {change.topic}-{change.partition}: {state}"
        require(state.leader == sender, f"{what}, which somebody else leads")
        require(state.isr == change.isr, f"{what}, which is not the ISR that was asked for")
        name = change.topic if isinstance(change.topic, str) else self._names[change.topic]
        history = self._seen.history.get(TopicPartition(name, change.partition))
        require(not history or state in history, f"{what}, which was never written")

    def _check_producer_ids(
        self,
        process: RegentProcess,
        request: AllocateProducerIdsRequest,
        answer: AllocateProducerIdsResponse,
    ) -> None:
        if answer.error_code == NONE:
            owner = f"broker-{request.broker_id} by {process}"
            self.gave_producer_ids(owner, answer.first_id, answer.size)

    def gave_producer_ids(self, owner: str, first_id: int, size: int) -> None:
        """Somebody gets a block of producer ids: nobody else has one of them, or will get one."""
        for known, other in self._blocks.items():
            overlaps = known < first_id + size and first_id < known + size
            require(not overlaps, f"{owner} gets producer ids from {first_id}, so did {other}")
        self._blocks[first_id] = owner
        node = self._world.zookeeper.get(paths.PRODUCER_ID_BLOCK)
        next_id = decode_next_producer_id(None if node is None else node.data)
        require(
            next_id >= first_id + size,
            f"{owner} gets producer ids from {first_id}, the next ones begin at {next_id}",
        )

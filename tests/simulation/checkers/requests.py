"""What is sent has been written, and what brokers obey is of one mind."""

from __future__ import annotations

from typing import TYPE_CHECKING

from regent.model.partition import LeaderAndIsr, TopicPartition
from regent.protocol.control_requests import (
    ControlHeader,
    ControlRequest,
    ControlRequests,
    LeaderAndIsrRequest,
)
from regent.zk_data import paths
from tests.simulation.checkers.observed import Observed
from tests.simulation.driver import RegentProcess
from tests.simulation.trace import require
from tests.support.leadership_entries import entries_of

if TYPE_CHECKING:
    from tests.simulation.broker import SimulatedBroker
    from tests.simulation.world import World


class RequestChecker:
    """Follows batches, and requests that brokers accept."""

    def __init__(self, world: World, seen: Observed) -> None:
        self._world = world
        self._seen = seen
        self._controller_of_epoch: dict[int, int] = {}

    def sent(self, sender: str, batch: ControlRequests) -> None:
        """A controller hands a batch to its channels."""
        for receiver, named in batch.leader_and_isr.items():
            require(receiver in batch.brokers, f"{sender}: no broker {receiver} to send to")
            for tp in named:
                require(tp in batch.partitions, f"{sender} sends {tp} without its state")
                replicas = batch.partitions[tp].assignment.replicas
                require(
                    receiver in replicas,
                    f"{sender} tells {receiver} to host {tp}, which is assigned to {replicas}",
                )
        for tp, state in batch.partitions.items():
            if tp not in batch.deleted_partitions:
                self._check_announced(sender, tp, state.leader_and_isr)
        for receiver in (*batch.update_metadata_receivers, *batch.stop_replica):
            require(receiver in batch.brokers, f"{sender}: no broker {receiver} to send to")

    def _check_announced(self, sender: str, tp: TopicPartition, state: LeaderAndIsr) -> None:
        """What is announced has been written: that version, with that content."""
        history = self._seen.history.get(tp, [])
        written = state.partition_epoch < len(history) and history[state.partition_epoch]
        is_gone = not self._world.zookeeper.get(paths.topic(tp.topic))
        if not history and (is_gone or tp.topic in self._seen.removed_by_hand):
            return  # the topic has been deleted meanwhile
        if not written and tp.topic in self._seen.removed_by_hand:
            return  # of before, and the state begins at version 0 once more
        require(written == state, f"{sender} announces {tp} as {state}, written was {written}")

    def leaves(self, sender: object, request: ControlRequest) -> None:
        """Nothing leaves a process that has slept while another controller was elected: brokers
        that do not know that one would obey."""
        epoch = request.header.controller_epoch
        require(
            not isinstance(sender, RegentProcess)
            or epoch >= sender.epoch_at_awakening
            or self._seen.is_epoch_rewritten,
            f"{sender} sends in epoch {epoch}, which has ended, after a pause",
        )

    def obeyed(self, broker: SimulatedBroker, header: ControlHeader) -> None:
        """A broker accepts a request as coming from the controller."""
        epoch, controller = header.controller_epoch, header.controller_id
        require(epoch >= broker.controller_epoch, f"{broker} obeys {controller} of the past")
        if self._seen.is_epoch_rewritten:
            return  # epochs that were won before may be above it, and be won once more
        require(epoch <= self._seen.epoch, f"{broker} obeys epoch {epoch}, which nobody has won")
        known = self._controller_of_epoch.setdefault(epoch, controller)
        require(known == controller, f"{known} and {controller} both reign in epoch {epoch}")

    def leadership_arrives(self, request: LeaderAndIsrRequest) -> None:
        """A broker receives a LeaderAndIsr: collected entries, from which it is joined if they are
        all, say what its values do."""
        entries, named = request.entries, request.partitions
        if entries.entry_count == len(named):
            expected = entries_of(named, request.states, suffix=entries.suffix)
            require(
                entries == expected and not any(named.values()),
                f"the entries sent to {request.header.broker_id} are not those of its partitions",
            )

    def accepted_leadership(
        self, broker: SimulatedBroker, tp: TopicPartition, state: LeaderAndIsr
    ) -> None:
        """A broker takes a LeaderAndIsr to heart: per leader epoch there is one leader."""
        if self._world.removals.has_unknown_epochs(tp.topic):
            return
        known = self._seen.announced.setdefault((tp, state.leader_epoch), state.leader)
        require(
            known == state.leader,
            f"{broker} follows {state.leader} in epoch {state.leader_epoch} of {tp}; "
            f"others follow {known}",
        )

"""Leadership as it is written: epochs, ISRs, and what an ISR promises."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from regent.model.partition import (
    NO_EPOCH,
    NO_LEADER,
    LeaderAndIsr,
    TopicPartition,
)
from regent.zk_data import paths
from regent.zk_data.operations import Create, Delete, Operation, SetData, ZNode
from regent.zk_data.topics import decode_partition_state
from tests.simulation.checkers.broker_requests import BrokerRequestChecker
from tests.simulation.checkers.observed import Observed
from tests.simulation.checkers.unclean import UncleanElections
from tests.simulation.trace import require

if TYPE_CHECKING:
    from tests.simulation.world import World

_EXCEEDED_BY = 5
"""Versions by which states that were created again exceed those that were known: leaders may be
ahead of what is known."""


class LeadershipChecker:
    """Follows the states of partitions."""

    def __init__(
        self,
        world: World,
        seen: Observed,
        unclean: UncleanElections,
        requests: BrokerRequestChecker,
    ) -> None:
        self._world = world
        self._seen = seen
        self._unclean = unclean
        self._requests = requests

    def state_written(
        self, writer: str, tp: TopicPartition, operation: Operation, *, is_controller: bool
    ) -> None:
        """Somebody creates, changes or deletes the state node of a partition."""
        if isinstance(operation, Delete):
            marked = self._world.zookeeper.get(paths.delete_topic(tp.topic)) is not None
            require(marked or writer == "admin", f"{writer} deletes the state of {tp}")
            return
        assert isinstance(operation, Create | SetData)
        node = self._world.zookeeper.get(operation.path)
        assert node is not None
        if writer == "admin":
            history = self._seen.history[tp]  # damaged, corrected, or created again as it was
            last = history[-1]
            if isinstance(operation, Create):
                self._seen.set_back_from[tp] = last.partition_epoch
                history.clear()
            history.append(msgspec.structs.replace(last, partition_epoch=len(history)))
            return
        # The data of this operation: the node may have been written twice in one transaction.
        version = len(self._seen.history.get(tp, ())) if isinstance(operation, SetData) else 0
        state = decode_partition_state(
            operation.path, ZNode(operation.data, version, node.czxid, node.mzxid)
        )
        self._check_shape(writer, tp, state)
        history = self._seen.history.setdefault(tp, [])
        if isinstance(operation, Create):
            history.clear()
            require(is_controller, f"{writer} creates the state of {tp}")
            require(
                state.leader_epoch == 0 or tp.topic in self._seen.removed_by_hand,
                f"{tp} is born with epoch {state.leader_epoch}",
            )
        else:
            self._check_successor(writer, tp, history[-1], state, is_controller=is_controller)
        is_as_before = tp.topic in self._seen.removed_by_hand or self._seen.is_epoch_rewritten
        if is_controller and not is_as_before:
            require(
                state.controller_epoch == self._seen.epoch,
                f"{writer} signs {tp} with epoch {state.controller_epoch}, not {self._seen.epoch}",
            )
        history.append(state)
        if isinstance(operation, Create):
            self._world.removals.born(tp)
        self._check_members_have_what_is_committed(tp, state)

    def _check_shape(self, writer: str, tp: TopicPartition, state: LeaderAndIsr) -> None:
        require(state.isr, f"{writer} empties the ISR of {tp}")
        require(len(set(state.isr)) == len(state.isr), f"{writer}: ISR of {tp} is {state.isr}")
        require(
            state.leader == NO_LEADER or state.leader in state.isr,
            f"{writer} makes {state.leader} lead {tp} from outside the ISR {state.isr}",
        )
        replicas = self._seen.replicas(tp)
        if tp.topic in self._seen.removed_by_hand:
            if replicas is None or not set(state.isr) <= set(replicas):
                self._seen.misplaced[tp] = None
            return
        require(replicas is not None, f"{writer} writes the state of unknown {tp}")
        assert replicas is not None
        require(
            set(state.isr) <= set(replicas),
            f"{writer}: ISR {state.isr} of {tp} is not within {replicas}",
        )

    def _check_successor(
        self,
        writer: str,
        tp: TopicPartition,
        before: LeaderAndIsr,
        state: LeaderAndIsr,
        *,
        is_controller: bool,
    ) -> None:
        if not is_controller:
            if tp.topic in self._seen.removed_by_hand:
                # The version of the state that a leader knows is that of another topic, too.
                self._seen.misplaced[tp] = None
                return
            require(
                writer == f"broker-{state.leader}"
                and state.leader == before.leader
                and state.leader_epoch == before.leader_epoch
                and state.controller_epoch == before.controller_epoch,
                f"{writer} changes {tp} from {before} to {state}",
            )
            return
        if (
            state.partition_epoch <= self._seen.set_back_from.get(tp, NO_EPOCH) + _EXCEEDED_BY
            and msgspec.structs.replace(before, partition_epoch=state.partition_epoch) == state
        ):
            return
        if state.leader_epoch == before.leader_epoch and state.leader == before.leader:
            self._requests.check_was_wanted(tp, before, state)
            return
        require(
            state.leader_epoch == before.leader_epoch + 1
            or (
                state.leader_epoch > before.leader_epoch and tp.topic in self._seen.removed_by_hand
            ),
            f"{writer}: leader epoch of {tp} {before.leader_epoch} -> {state.leader_epoch}",
        )
        require(
            state.controller_epoch >= before.controller_epoch,
            f"{writer}: controller epoch of {tp} falls to {state.controller_epoch}",
        )
        if state.leader not in (NO_LEADER, *before.isr):
            require(
                self._unclean.may_be_held(writer, tp),
                f"{writer} elects {state.leader} for {tp} from outside the ISR {before.isr}",
            )
            require(state.isr == (state.leader,), f"{tp}: ISR {state.isr} after unclean election")
            self._world.ledger.strike_off(tp)
            self._world.trace.line("checker", "unclean", tp)
        else:
            require(
                set(state.isr) <= set(before.isr),
                f"{writer} takes {state.isr} into the ISR {before.isr} of {tp}",
            )

    def _check_members_have_what_is_committed(
        self, tp: TopicPartition, state: LeaderAndIsr
    ) -> None:
        for member in state.isr:
            log = self._world.brokers[member].logs.get(tp)
            missing = self._world.ledger.missing(tp, log)
            require(not missing, f"{tp}: broker {member} is in sync without {missing}")

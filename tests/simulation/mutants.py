"""Deliberate defects of the core. Each must be caught, else the checkers are blind."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import pytest

from regent.controller import kafka_controller
from regent.controller.active_controller import ActiveController
from regent.controller.brokers import answers, broker_changes
from regent.controller.effects import ReadChildren, ReadData, Write
from regent.controller.events import ChannelEvent
from regent.controller.partitions import isr_changes
from regent.controller.state.context import ControllerContext
from regent.controller.state.deletion_progress import TopicDeletionProgress
from regent.controller.state.refusals import Refusals
from regent.controller.term import cluster_loading, failover
from regent.controller.term.life_cycle import LifeCycle
from regent.controller.topics import (
    stray_replicas,
    topic_changes,
    topic_deletion_manager,
    topic_node_removal,
)
from regent.controller.topics.topic_deletion_manager import TopicDeletionManager
from regent.controller.transitions import election, partition_state_machine, replica_state_machine
from regent.controller.transitions.broker_request_batch import ControllerBrokerRequestBatch
from regent.controller.transitions.election import Elected
from regent.controller.transitions.partition_state_znodes import epoch_guard, write_partition_states
from regent.controller.transitions.replica_state_machine import ReplicaStateMachine
from regent.zk_data import paths
from regent.zk_data.operations import ANY_VERSION, Check, Delete

Mutate = Callable[[pytest.MonkeyPatch], None]


def no_fence(patch: pytest.MonkeyPatch) -> None:
    """Writes hold whoever is the controller."""
    for module in [m for name, m in sys.modules.items() if name.startswith("regent.controller")]:
        if getattr(module, "epoch_guard", None) is epoch_guard:
            patch.setattr(
                module, "epoch_guard", lambda _: Check(paths.CONTROLLER_EPOCH, ANY_VERSION)
            )


def no_resignation(patch: pytest.MonkeyPatch) -> None:
    """A deposed controller stays the controller."""

    async def stay(self: LifeCycle) -> None:
        pass

    patch.setattr(LifeCycle, "resign", stay)


def leader_from_outside_the_isr(patch: pytest.MonkeyPatch) -> None:
    """The first live replica leads, in sync or not."""

    def elect(
        assignment: tuple[int, ...], isr: tuple[int, ...], live: Sequence[int], **_: Any
    ) -> Elected | None:
        leader = next((r for r in assignment if r in live), None)
        return None if leader is None else Elected(leader, (leader,), 0)

    patch.setattr(election, "offline", elect)


def no_new_leader_epoch(patch: pytest.MonkeyPatch) -> None:
    """A new leader reigns in the epoch of the old one."""

    async def write(context: ControllerContext, states: dict[Any, Any]) -> Any:
        same = {
            tp: msgspec.structs.replace(state, leader_epoch=state.leader_epoch - 1)
            for tp, state in states.items()
        }
        return await write_partition_states(context, same)

    patch.setattr(partition_state_machine, "write_partition_states", write)


def brokers_not_watched(patch: pytest.MonkeyPatch) -> None:
    """After the first change of the brokers nobody looks any more."""

    def read(read_paths: Sequence[str], watch: bool = False) -> ReadChildren:
        return ReadChildren(read_paths, watch=watch and read_paths != [paths.BROKER_IDS])

    patch.setattr(cluster_loading, "ReadChildren", read)


def topics_not_watched(patch: pytest.MonkeyPatch) -> None:
    """After the first change of the topics nobody looks any more."""
    patch.setattr(topic_changes, "ReadChildren", lambda p, watch=False: ReadChildren(p))


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


def brokers_not_announced(patch: pytest.MonkeyPatch) -> None:
    """A failover sends LeaderAndIsr before anybody knows which brokers are alive."""

    class Silent(ControllerBrokerRequestBatch):
        async def send(self) -> None:
            pass

    patch.setattr(failover, "ControllerBrokerRequestBatch", Silent)


def shrunk_isr_not_told(patch: pytest.MonkeyPatch) -> None:
    """A leader is not informed that the controller has changed its ISR."""

    async def remove(self: Any, broker_id: int, partitions: Any) -> Any:
        _, failures = await original(self, broker_id, partitions)
        return [], failures

    original = ReplicaStateMachine._remove_from_isr
    patch.setattr(ReplicaStateMachine, "_remove_from_isr", remove)


def lost_answer_not_told(patch: pytest.MonkeyPatch) -> None:
    """The same, but only where the write had to be repeated."""

    async def write(context: ControllerContext, states: dict[Any, Any]) -> Any:
        outcome = await write_partition_states(context, states)
        repeated.extend(outcome.conflicts)
        return outcome

    async def remove(self: Any, broker_id: int, partitions: Any) -> Any:
        repeated.clear()
        changed, failures = await original(self, broker_id, partitions)
        return [tp for tp in changed if tp not in repeated], failures

    repeated: list[Any] = []
    original = ReplicaStateMachine._remove_from_isr
    patch.setattr(replica_state_machine, "write_partition_states", write)
    patch.setattr(ReplicaStateMachine, "_remove_from_isr", remove)


def isr_changes_not_read(patch: pytest.MonkeyPatch) -> None:
    """Notifications are removed unread."""

    async def refresh(*_: Any) -> list[Any]:
        return []

    patch.setattr(isr_changes, "refresh_leadership", refresh)


def deletion_does_not_wait(patch: pytest.MonkeyPatch) -> None:
    """The znodes go as soon as the brokers have been asked."""

    def done(self: Any) -> bool:
        return bool(self.started > 0 or self.deleted == self.replicas)

    patch.setattr(TopicDeletionProgress, "is_complete", property(done))
    patch.setattr(
        topic_deletion_manager.TopicDeletionManager, "fail_replicas", lambda *_: _nothing()
    )


async def _nothing() -> None:
    pass


def deletion_not_resumed(patch: pytest.MonkeyPatch) -> None:
    """A broker returns, and the deletion that waited for it waits on."""
    patch.setattr(TopicDeletionManager, "resume_for", lambda *_: _nothing())


def answers_of_the_past_count(patch: pytest.MonkeyPatch) -> None:
    """An answer to a former term, or of a former life of the broker, is taken for a new one."""

    async def never(*_: Any) -> bool:
        return False

    patch.setattr(answers, "is_of_the_past", never)


def unknown_topics_are_not_deleted(patch: pytest.MonkeyPatch) -> None:
    """A marker whose topic is not known (yet) is removed."""

    async def process(active: ActiveController) -> None:
        (children,) = await ReadChildren([paths.DELETE_TOPICS], watch=True)
        marked = list(children or ())
        unknown = [topic for topic in marked if not active.context.cluster.has_topic(topic)]
        await Write(
            [Delete(paths.delete_topic(topic), missing_ok=True) for topic in unknown],
            guard=epoch_guard(active.context),
        )
        await active.deletions.enqueue([topic for topic in marked if topic not in unknown])

    patch.setattr(topic_changes, "process_topic_deletion", process)


def mended_registration_not_noticed(patch: pytest.MonkeyPatch) -> None:
    """A changed registration concerns only brokers that are known already."""

    async def process(active: ActiveController, broker_id: int) -> None:
        await ReadData([paths.broker_id(broker_id)], watch=True)
        if broker_id in active.context.cluster.brokers:
            await original(active, broker_id)

    original = broker_changes.process_broker_modifications
    patch.setattr(broker_changes, "process_broker_modifications", process)


def deletion_of_the_unreadable_not_announced(patch: pytest.MonkeyPatch) -> None:
    """Partitions without leadership are never announced, not even as deleted."""

    def states(self: Any) -> Any:
        leadership = self._context.cluster.leadership
        return {tp: state for tp, state in original(self).items() if tp in leadership}

    original = ControllerBrokerRequestBatch._states
    patch.setattr(ControllerBrokerRequestBatch, "_states", states)


def refusals_not_kept(patch: pytest.MonkeyPatch) -> None:
    """What a broker refuses is not written down."""
    patch.setattr(Refusals, "update", lambda *_, **__: {})


def refusals_outlive_their_broker(patch: pytest.MonkeyPatch) -> None:
    """A broker that has ended is still said to refuse."""
    patch.setattr(Refusals, "forget_broker", lambda *_: None)


def reports_of_the_past_count(patch: pytest.MonkeyPatch) -> None:
    """A channel that failed in a former term is taken for one of this term."""

    async def process(active: ActiveController, event: Any) -> Any:
        if isinstance(event, ChannelEvent):
            event = msgspec.structs.replace(event, controller_epoch=active.context.term.epoch)
        return await original(active, event)

    original = kafka_controller._dispatch_active
    patch.setattr(kafka_controller, "_dispatch_active", process)


def last_nodes_one_by_one(patch: pytest.MonkeyPatch) -> None:
    """The last nodes of a topic are deleted one after the other."""

    async def remove(context: ControllerContext, topics: Sequence[str], _: Any) -> Sequence[str]:
        for path in (paths.topic, paths.topic_config, paths.delete_topic):
            await Write(
                [Delete(path(topic), missing_ok=True) for topic in topics],
                guard=epoch_guard(context),
            )
        return topics

    patch.setattr(topic_node_removal, "_remove_last_nodes", remove)


def strays_left_on_disk(patch: pytest.MonkeyPatch) -> None:
    """What a broker could not delete while it was away stays there for good."""
    patch.setattr(stray_replicas, "delete_on_started", lambda *_: _nothing())
    patch.setattr(stray_replicas, "delete_after_failover", lambda *_: _nothing())


MUTANTS: dict[str, tuple[Mutate, str]] = {
    mutate.__name__: (mutate, caught_by)
    for mutate, caught_by in (
        (no_fence, "writes without the fence"),
        (no_resignation, "active controllers|brokers are|leadership are|obeys"),
        (leader_from_outside_the_isr, "from outside the ISR"),
        (no_new_leader_epoch, "leader epoch of"),
        (brokers_not_watched, "brokers are|time is up"),
        (topics_not_watched, "assignments are|never born|topic ids are"),
        (bounces_not_noticed, "brokers are|does not host|has .* at|obeys"),
        (brokers_not_announced, "obeys|does not host|does not follow|ISR of|differs on"),
        (shrunk_isr_not_told, "ISR of|has .* at"),
        (lost_answer_not_told, "ISR of|has .* at"),
        (isr_changes_not_read, "leadership are|has .* as"),
        (deletion_does_not_wait, "still ha|keeps|Illegal replica transition|refusals are"),
        (deletion_not_resumed, "is not deleted|leadership are"),
        (
            answers_of_the_past_count,
            "still have it|is not deleted|leadership are|replica states are|keeps a refusal",
        ),
        (unknown_topics_are_not_deleted, "removes the mark of"),
        (mended_registration_not_noticed, "brokers are"),
        (deletion_of_the_unreadable_not_announced, "still announces"),
        (refusals_not_kept, "has no refusal"),
        (refusals_outlive_their_broker, "keeps a refusal|refusals are"),
        (reports_of_the_past_count, "Event failed"),
        (strays_left_on_disk, "still has strays|has .* under the id"),
        (last_nodes_one_by_one, "not in one transaction with its marker"),
    )
}
"""Name -> what it does, and what the checkers say about it."""

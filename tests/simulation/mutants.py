"""Deliberate defects of the core. Each must be caught, else the checkers are blind."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import msgspec
import pytest

from regent.controller import kafka_controller
from regent.controller.active_controller import ActiveController
from regent.controller.brokers import (
    answers,
    broker_changes,
    log_dir_events,
    refusal_repair,
)
from regent.controller.commands import ElectionType
from regent.controller.effects import Exists, ReadChildren, ReadData, Write
from regent.controller.elections import (
    auto_leader_balance,
    leader_election,
    preferred_replica_election,
)
from regent.controller.events import ChannelEvent
from regent.controller.partitions import isr_changes
from regent.controller.reassignment import reassignments, request_node
from regent.controller.state.causes import ChangeKind
from regent.controller.state.cluster_state import ClusterState
from regent.controller.state.context import ControllerContext
from regent.controller.state.deletion_progress import TopicDeletionProgress
from regent.controller.state.refusals import Refusals
from regent.controller.state.state_change_trail import StateChangeTrail
from regent.controller.state.states import ReplicaState
from regent.controller.term import cluster_loading, failover
from regent.controller.term.life_cycle import LifeCycle
from regent.controller.topics import (
    stray_replica_notes,
    stray_replicas,
    topic_changes,
    topic_deletion_manager,
    topic_id_notes,
    topic_ids,
    topic_node_removal,
)
from regent.controller.topics.topic_deletion_manager import TopicDeletionManager
from regent.controller.transitions import election, partition_state_machine, replica_state_machine
from regent.controller.transitions.broker_request_batch import ControllerBrokerRequestBatch
from regent.controller.transitions.election import Elected
from regent.controller.transitions.partition_state_znodes import epoch_guard, write_partition_states
from regent.controller.transitions.replica_state_machine import ReplicaStateMachine
from regent.model.partition import TopicPartition
from regent.protocol import metadata_updates, pending_requests
from regent.protocol.control_requests import (
    ControlHeader,
    ControlRequest,
    ControlRequests,
    LeaderAndIsrRequest,
    PartitionUpdates,
)
from regent.protocol.metadata_updates import Updates
from regent.protocol.pending_requests import (
    PendingRequests,
    _PendingLeaderAndIsr,
    _PendingUpdateMetadata,
)
from regent.zk_data import paths
from regent.zk_data.operations import ANY_VERSION, Check, Delete, SetData
from regent.zk_data.topics import TopicZNode, encode_topic

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
        known = [topic for topic in marked if topic not in unknown]
        await reassignments.abandon(active, known)
        await active.deletions.enqueue(known)

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


def requests_for_leaders_stay(patch: pytest.MonkeyPatch) -> None:
    """A request for preferred leaders is carried out, and not removed."""
    patch.setattr(
        preferred_replica_election, "Delete", lambda *_, **__: Delete("/nothing", 0, True)
    )


def requests_for_leaders_not_watched(patch: pytest.MonkeyPatch) -> None:
    """Only a failover finds a request for preferred leaders."""
    patch.setattr(preferred_replica_election, "Exists", lambda p, watch=False: Exists(p))


def never_led_partitions_break_elections(patch: pytest.MonkeyPatch) -> None:
    """A partition without leadership is asked for its leader, as upstream does."""

    def refusal(context: ControllerContext, tp: Any, election_type: Any) -> Any:
        if context.cluster.assignment(tp) is not None:
            context.cluster.leadership[tp]
        return original(context, tp, election_type)

    original = leader_election._refusal
    patch.setattr(leader_election, "_refusal", refusal)


def preferred_leaders_out_of_sync(patch: pytest.MonkeyPatch) -> None:
    """The preferred replica leads, in sync or not."""

    def elect(assignment: tuple[int, ...], isr: tuple[int, ...], *_: Any, **__: Any) -> Elected:
        return Elected(assignment[0], tuple(dict.fromkeys((*isr, assignment[0]))), 0)

    patch.setattr(election, "preferred", elect)


def every_election_may_be_unclean(patch: pytest.MonkeyPatch) -> None:
    """Who asks for preferred leaders gets any."""
    patch.setitem(
        leader_election._STRATEGIES, ElectionType.PREFERRED, election.OFFLINE_ALLOW_UNCLEAN
    )


def balance_checked_once(patch: pytest.MonkeyPatch) -> None:
    """The timer of the balance is not armed again."""

    async def check(active: ActiveController) -> None:
        await leader_election.elect_leaders(
            active, auto_leader_balance.movable_leaders(active.context, 10), ElectionType.PREFERRED
        )

    patch.setattr(auto_leader_balance, "process_auto_preferred_replica_leader_election", check)


def balance_not_followed(patch: pytest.MonkeyPatch) -> None:
    """The balance of leaders is that of the failover for ever."""
    patch.setattr(ClusterState, "_note_partitions", lambda *_: None)


def failed_log_dirs_not_asked_about(patch: pytest.MonkeyPatch) -> None:
    """The notification of a failed log directory is removed, and nothing else."""
    patch.setattr(log_dir_events, "decode_log_dir_event", lambda *_: -1)


def failed_replicas_stay_online(patch: pytest.MonkeyPatch) -> None:
    """A broker's answer that a replica is on a failed log directory is ignored."""
    patch.setattr(answers, "KAFKA_STORAGE_ERROR", -99)


def failed_log_dirs_outlive_a_restart(patch: pytest.MonkeyPatch) -> None:
    """A broker that was restarted is still held to have failed log directories."""
    patch.setattr(ControllerContext, "set_replicas_on_offline_dirs", lambda *_: None)


def changes_of_isrs_leave_no_trail(patch: pytest.MonkeyPatch) -> None:
    """The trail has elections only."""

    def record(self: Any, kind: ChangeKind, changes: Any, *, known: Any) -> None:
        if kind is not ChangeKind.REPLICA_OFFLINE:
            original(self, kind, changes, known=known)

    original = StateChangeTrail.record
    patch.setattr(StateChangeTrail, "record", record)


def causes_outlive_their_event(patch: pytest.MonkeyPatch) -> None:
    """Whatever happens in a term is taken for its failover."""
    patch.setattr(StateChangeTrail, "begin_event", lambda *_: None)


def unannounced_changes_leave_no_trail(patch: pytest.MonkeyPatch) -> None:
    """What a leader has changed before an election is taken for the election's doing."""

    def set_leadership(self: Any, changes: Any, *kind: ChangeKind, based_on: Any = None) -> None:
        original(self, changes, *kind)

    original = ClusterState.set_leadership
    patch.setattr(ClusterState, "set_leadership", set_leadership)


def recreation_drops_deletion(patch: pytest.MonkeyPatch) -> None:
    """LeaderAndIsr of a re-created partition takes the place of the deletion that waits."""

    def overtake(self: PendingRequests, replicas: Iterable[TopicPartition]) -> None:
        for tp in replicas:
            self._stops.pop(tp, None)

    patch.setattr(PendingRequests, "_leadership_overtakes_stops", overtake)


def deletion_is_forgotten_by_the_next_one(patch: pytest.MonkeyPatch) -> None:
    """A stop takes the place of a deletion that waits, with the epoch of another replica."""
    patch.setattr(pending_requests, "_merge_stops", lambda _, stop: stop)


def stop_outlives_leadership(patch: pytest.MonkeyPatch) -> None:
    """A replica that is to go on is stopped, because that waited."""
    patch.setattr(PendingRequests, "_leadership_overtakes_stops", lambda *_: None)


def leadership_outlives_deletion(patch: pytest.MonkeyPatch) -> None:
    """A replica that is to be deleted is created before."""
    patch.setattr(_PendingLeaderAndIsr, "discard", lambda *_: None)


def leadership_overtakes_the_list_of_brokers(patch: pytest.MonkeyPatch) -> None:
    """A follower is sent a leader before it knows that broker."""
    patch.setattr(_PendingUpdateMetadata, "must_list_brokers_first", False)


def deletion_delays_leadership(patch: pytest.MonkeyPatch) -> None:
    """What is to be stopped goes first."""

    def take(self: PendingRequests) -> ControlRequest:
        return self._take_stops(self._stops) if self._stops else original(self)

    original = PendingRequests.take
    patch.setattr(PendingRequests, "take", take)


def is_new_does_not_stick(patch: pytest.MonkeyPatch) -> None:
    """A new replica that was elected about before the broker heard of it is not new."""

    def add(self: Any, replicas: Mapping[TopicPartition, bool], requests: ControlRequests) -> None:
        original(self, replicas, requests)
        self._partitions = {**self._partitions, **replicas}
        self._is_own = False

    original = _PendingLeaderAndIsr.add
    patch.setattr(_PendingLeaderAndIsr, "add", add)


def first_leader_and_isr_is_split(patch: pytest.MonkeyPatch) -> None:
    """A broker begins to write checkpoints before it was sent all replicas."""

    def take(self: Any, header: ControlHeader) -> LeaderAndIsrRequest:
        self._is_first = False
        return original(self, header)

    original = _PendingLeaderAndIsr.take
    patch.setattr(_PendingLeaderAndIsr, "take", take)


def recreation_is_announced_without_deletion(patch: pytest.MonkeyPatch) -> None:
    """Group coordinators are not sent the deletion of a topic that is there again."""

    def merge(updates: Sequence[PartitionUpdates], *, max_partitions: int) -> Updates:
        merged = original(updates, max_partitions=max_partitions)
        there = [u for u in merged if any(tp not in u.deleted for tp in u.partitions)]
        return tuple(there) or merged

    original = metadata_updates.merge_updates
    patch.setattr(metadata_updates, "merge_updates", merge)


def nothing_is_merged(patch: pytest.MonkeyPatch) -> None:
    """Updates wait for ever behind each other."""
    patch.setattr(_PendingUpdateMetadata, "_compact", lambda *_: None)


def reassignments_not_resumed(patch: pytest.MonkeyPatch) -> None:
    """What a predecessor has begun stays where it is."""
    patch.setattr(failover, "resume_reassignments", lambda *_: _nothing())


def started_targets_not_told(patch: pytest.MonkeyPatch) -> None:
    """A target that was down returns, and nobody creates its replica."""
    patch.setattr(broker_changes, "resume_for_targets", lambda *_: _nothing())


def reassignments_not_completed(patch: pytest.MonkeyPatch) -> None:
    """The target is in sync, and nobody looks."""
    patch.setattr(isr_changes, "complete_where_in_sync", lambda *_: _nothing())
    patch.setattr(reassignments, "check_completion", lambda *_: _nothing())


def leaving_replicas_not_deleted(patch: pytest.MonkeyPatch) -> None:
    """Replicas that leave are forgotten where they are."""

    async def forget(active: ActiveController, replicas: Any) -> dict[Any, str]:
        for tp, broker_ids in replicas.items():
            for broker_id in broker_ids:
                await active.replicas.handle_state_changes({broker_id: [tp]}, ReplicaState.OFFLINE)
                active.context.set_replica_state(broker_id, tp, ReplicaState.NON_EXISTENT)
        return {}

    patch.setattr(reassignments, "_delete_replicas", forget)


def topic_nodes_overwritten(patch: pytest.MonkeyPatch) -> None:
    """A topic node is replaced with what the controller remembers, whatever it is now."""

    async def store(active: ActiveController, assignments: Any) -> dict[Any, str]:
        cluster = active.context.cluster
        for topic in dict.fromkeys(tp.topic for tp in assignments):
            known = {**cluster.partitions_of(topic), **assignments}
            content = TopicZNode(
                cluster.topic_ids.get(topic),
                {tp.partition: a for tp, a in known.items() if tp.topic == topic},
            )
            await Write(
                [SetData(paths.topic(topic), encode_topic(content))],
                guard=epoch_guard(active.context),
            )
        return {}

    patch.setattr(reassignments, "store_assignments", store)


def replicas_in_sync_deleted(patch: pytest.MonkeyPatch) -> None:
    """What is not wanted any more is deleted, be it the only copy."""
    patch.setattr(reassignments, "shed", lambda *_: _no_failures())

    async def delete(active: ActiveController, replicas: Any) -> dict[Any, str]:
        await original(active, replicas)
        return {}

    original = reassignments._delete_replicas
    patch.setattr(reassignments, "_delete_replicas", delete)


async def _no_failures() -> dict[Any, str]:
    return {}


def done_requests_stay(patch: pytest.MonkeyPatch) -> None:
    """The request node keeps what has arrived."""
    patch.setattr(reassignments, "drop_requests", lambda *_: _nothing())


def requests_not_watched(patch: pytest.MonkeyPatch) -> None:
    """After the first look nobody hears of requests."""
    patch.setattr(request_node, "Exists", lambda read_paths, watch=False: Exists(read_paths))


def a_deletion_waits_for_its_reassignment(patch: pytest.MonkeyPatch) -> None:
    """A topic that is to be deleted is moved on."""
    for module in (topic_changes, failover):
        patch.setattr(module, "abandon_reassignments", lambda *_: _nothing())


def disks_not_asked_about(patch: pytest.MonkeyPatch) -> None:
    """A broker that confirms a deletion is taken to see all of its disks."""

    async def forget(active: ActiveController, broker_id: int, topics: Sequence[str]) -> None:
        notes = [(broker_id, topic) for topic in topics]
        await stray_replica_notes.forget(active.context, notes)

    patch.setattr(stray_replicas, "_ask_for_log_dirs", forget)


def refusals_not_repaired(patch: pytest.MonkeyPatch) -> None:
    """What a broker refuses is not sent again."""
    patch.setattr(refusal_repair, "_plan", lambda *_: _nothing())


def acceptance_is_enough(patch: pytest.MonkeyPatch) -> None:
    """A broker that accepts what it has refused is taken to have done all of it."""
    patch.setattr(refusal_repair, "_give_new_epochs", lambda *_: _nothing())


def topic_ids_not_noted(patch: pytest.MonkeyPatch) -> None:
    """A topic that loses its id while nobody leads gets a new one."""
    patch.setattr(topic_id_notes, "remember", lambda *_: _nothing())


def lost_topic_ids_not_restored(patch: pytest.MonkeyPatch) -> None:
    """Nobody looks at the ids of topic nodes that change."""
    patch.setattr(topic_ids, "take_nodes", lambda *_: _nothing())


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
        (
            unknown_topics_are_not_deleted,
            "removes the mark of|which is no reassignment",
        ),
        (mended_registration_not_noticed, "brokers are"),
        (deletion_of_the_unreadable_not_announced, "still announces"),
        (refusals_not_kept, "has no refusal"),
        (refusals_outlive_their_broker, "keeps a refusal|refusals are"),
        (reports_of_the_past_count, "Event failed"),
        (strays_left_on_disk, "still has strays|has .* under the id"),
        (changes_of_isrs_leave_no_trail, "the trail of"),
        (causes_outlive_their_event, "the trail of .* has ,"),
        (unannounced_changes_leave_no_trail, "a step is missing"),
        (reassignments_not_resumed, "on its way for ever|still to go to"),
        (started_targets_not_told, "on its way for ever|ISR of"),
        (reassignments_not_completed, "on its way for ever"),
        (leaving_replicas_not_deleted, "which it does not host"),
        (topic_nodes_overwritten, "loses|that are in sync|which is no reassignment"),
        (replicas_in_sync_deleted, "that are in sync|in sync without|to be online under"),
        (done_requests_stay, "still to go to"),
        (requests_not_watched, "still to go to"),
        (
            a_deletion_waits_for_its_reassignment,
            "is not deleted|still have it|assignments are|still to go to|Illegal",
        ),
        (last_nodes_one_by_one, "not in one transaction with its marker"),
        (requests_for_leaders_stay, "nobody elects preferred leaders"),
        (
            requests_for_leaders_not_watched,
            "nobody elects preferred leaders|not led by its preferred",
        ),
        (never_led_partitions_break_elections, "Event failed"),
        (preferred_leaders_out_of_sync, "from outside the ISR"),
        (every_election_may_be_unclean, "from outside the ISR|the preferred replica never led"),
        (balance_checked_once, "leaders are out of balance"),
        (balance_not_followed, "imbalanced, not"),
        (failed_log_dirs_not_asked_about, "failed log dir"),
        (failed_replicas_stay_online, "failed log dir"),
        (
            failed_log_dirs_outlive_a_restart,
            "online under|partition states are|has no leader|still has strays",
        ),
        (recreation_drops_deletion, "has the logs|hosts"),
        (deletion_is_forgotten_by_the_next_one, "has the logs|hosts"),
        (stop_outlives_leadership, "hosts|has the logs"),
        (leadership_outlives_deletion, "are created to be deleted"),
        (leadership_overtakes_the_list_of_brokers, "hosts"),
        (deletion_delays_leadership, "delays|has the logs|hosts"),
        (is_new_does_not_stick, "has the logs|hosts"),
        (first_leader_and_isr_is_split, "missing from the first"),
        (recreation_is_announced_without_deletion, "committed offsets|announces"),
        (nothing_is_merged, "things wait"),
        (disks_not_asked_about, "which it does not host"),
        (refusals_not_repaired, "refusals are|has .* at|does not follow"),
        (acceptance_is_enough, "has .* at|does not follow|refusals are"),
        (topic_ids_not_noted, "has .* under the id|has .* at|refusals are"),
        (lost_topic_ids_not_restored, "topic ids are|topics without an id"),
    )
}
"""Name -> what it does, and what the checkers say about it."""

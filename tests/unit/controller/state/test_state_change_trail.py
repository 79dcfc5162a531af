"""The state-change trail as a collection: what it keeps, what it drops, what it costs."""

from __future__ import annotations

from collections.abc import Mapping

from regent.controller.state.causes import CauseKind, ChangeKind
from regent.controller.state.state_change_trail import BROKERS, REMOVED_TOPICS, StateChangeTrail
from regent.model.cluster import Broker
from regent.model.partition import LeaderAndIsr, TopicPartition
from tests.unit.controller.world import T0, T1, make_broker, make_context

NOBODY: Mapping[TopicPartition, LeaderAndIsr] = {}


def state(leader_epoch: int, *isr: int) -> LeaderAndIsr:
    return LeaderAndIsr(isr[0], leader_epoch, isr, 1, leader_epoch)


def record(trail: StateChangeTrail, tp: TopicPartition, *epochs: int) -> None:
    for epoch in epochs:
        trail.record(ChangeKind.WRITTEN, {tp: state(epoch, 1)}, known=NOBODY)


def epochs(trail: StateChangeTrail, tp: TopicPartition) -> list[int]:
    return [c.after.leader_epoch for c in trail.partitions[tp].changes if c.after is not None]


class TestWhatIsKept:
    def test_a_change_has_what_was_before_and_after_and_why(self) -> None:
        trail = StateChangeTrail()
        trail.begin_event("BrokerChange", 5_000)
        broker = Broker(3, 77, (), session_id=9)
        with trail.because(CauseKind.BROKER_FAILED, brokers=[broker]):
            trail.record(
                ChangeKind.ELECTED_OFFLINE, {T0: state(1, 1, 2)}, known={T0: state(0, 3, 1, 2)}
            )
        (change,) = trail.partitions[T0].changes
        assert trail.partitions[T0].before == state(0, 3, 1, 2)
        assert trail.partitions[T0].now == change.after == state(1, 1, 2)
        assert change.kind is ChangeKind.ELECTED_OFFLINE
        assert (change.cause.kind, change.cause.event) == (CauseKind.BROKER_FAILED, "BrokerChange")
        assert change.cause.time_ms == 5_000
        (life,) = change.cause.brokers
        assert (life.broker_id, life.epoch, life.session_id) == (3, 77, 9)

    def test_what_is_as_before_is_no_change(self) -> None:
        trail = StateChangeTrail()
        trail.record(ChangeKind.OBSERVED, {T0: state(4, 1)}, known={T0: state(4, 1)})
        assert not trail.partitions
        record(trail, T0, 5, 5)
        assert epochs(trail, T0) == [5]

    def test_the_oldest_changes_of_a_partition_go_first(self) -> None:
        trail = StateChangeTrail(per_partition=3)
        record(trail, T0, 1, 2, 3, 4, 5)
        kept = trail.partitions[T0]
        assert epochs(trail, T0) == [3, 4, 5]
        assert kept.before == state(2, 1)
        assert kept.dropped == 2
        assert len(trail) == 3

    def test_of_all_partitions_those_go_first_that_have_not_changed_for_the_longest_time(
        self,
    ) -> None:
        trail = StateChangeTrail(in_all=20)
        for partition in range(20):
            record(trail, TopicPartition("t", partition), 1)
        record(trail, T0, 2)  # it was the first, now it is the last
        assert len(trail) == 18
        assert T0 in trail.partitions
        gone = [p for p in range(20) if TopicPartition("t", p) not in trail.partitions]
        assert gone == [1, 2, 3]
        assert trail.evicted_partitions == 3

    def test_the_count_of_changes_is_true_whatever_happens(self) -> None:
        trail = StateChangeTrail(per_partition=2, in_all=7)
        for number in range(50):
            record(trail, TopicPartition("tu"[number % 2], number % 5), number, number + 1)
            if number % 7 == 0:
                topic = "tu"[number % 3 % 2]
                trail.forget_topic(topic, [TopicPartition(topic, p) for p in range(5)])
            assert len(trail) == sum(len(t.changes) for t in trail.partitions.values())
            assert len(trail) <= 7


class TestTopicsThatAreGone:
    def test_their_partitions_are_forgotten_and_why_they_are_gone_is_kept(self) -> None:
        trail = StateChangeTrail()
        record(trail, T0, 1)
        trail.begin_event("TopicChange", 7)
        with trail.because(CauseKind.TOPIC_VANISHED):
            trail.forget_topic("t", [T0, T1])
        assert not trail.partitions
        assert trail.removed_topics["t"].kind is CauseKind.TOPIC_VANISHED

    def test_of_many_the_last_are_remembered(self) -> None:
        trail = StateChangeTrail()
        for number in range(REMOVED_TOPICS + 5):
            trail.forget_topic(str(number), ())
        assert len(trail.removed_topics) == REMOVED_TOPICS
        assert "4" not in trail.removed_topics
        assert "5" in trail.removed_topics


class TestCauses:
    def test_of_many_brokers_the_last_are_remembered(self) -> None:
        trail = StateChangeTrail()
        for broker_id in (*range(BROKERS), 0, *range(BROKERS, BROKERS + 5)):
            with trail.because(CauseKind.BROKER_STARTED, brokers=[make_broker(broker_id)]):
                pass
        assert len(trail.broker_causes) == BROKERS
        assert 0 in trail.broker_causes
        assert 5 not in trail.broker_causes
        assert 6 in trail.broker_causes

    def test_an_inner_cause_replaces_the_outer_one_for_its_time(self) -> None:
        trail = StateChangeTrail()
        trail.begin_event("BrokerChange", 1)
        with trail.because(CauseKind.BROKER_STARTED, brokers=[make_broker(1)]):
            record(trail, T0, 1)
            with trail.because(CauseKind.TOPIC_DELETION):
                record(trail, T0, 2)
            record(trail, T0, 3)
        record(trail, T0, 4)
        kinds = [change.cause.kind for change in trail.partitions[T0].changes]
        started, deletion = CauseKind.BROKER_STARTED, CauseKind.TOPIC_DELETION
        assert kinds == [started, deletion, started, CauseKind.OTHER]
        assert trail.broker_causes[1].kind is CauseKind.BROKER_STARTED


class TestTheClusterState:
    def test_what_is_loaded_is_no_change(self) -> None:
        context = make_context(1)
        context.cluster.load_leadership({T0: state(5, 1)})
        assert context.cluster.leadership[T0] == state(5, 1)
        assert not context.trail.partitions

    def test_what_its_leader_has_changed_before_an_election_is_a_change_of_its_own(self) -> None:
        context = make_context(1, 2, 3)
        context.cluster.load_leadership({T0: state(5, 1, 2, 3)})
        shrunk, elected = state(5, 1, 2), state(6, 2)
        context.cluster.set_leadership(
            {T0: elected}, ChangeKind.ELECTED_OFFLINE, based_on={T0: shrunk, T1: shrunk}
        )
        changes = context.trail.partitions[T0].changes
        assert [(c.kind, c.after) for c in changes] == [
            (ChangeKind.OBSERVED, shrunk),
            (ChangeKind.ELECTED_OFFLINE, elected),
        ]
        assert T1 not in context.trail.partitions

    def test_a_state_that_cannot_be_read_any_more_is_a_change(self) -> None:
        context = make_context(1)
        context.cluster.load_leadership({T0: state(5, 1)})
        context.cluster.forget_leadership(T0)
        trail = context.trail.partitions[T0]
        assert (trail.before, trail.now) == (state(5, 1), None)
        assert trail.changes[0].kind is ChangeKind.UNREADABLE

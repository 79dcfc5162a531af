"""A broker that is about to stop leaves its partitions: ControlledShutdown (KIP-40, KIP-380)."""

from __future__ import annotations

import pytest

from regent.admin.commands import Accepted, Reason, Rejected
from regent.controller import events as e
from regent.controller.active_controller import ActiveController
from regent.controller.brokers.released_partitions import process_partitions_released
from regent.controller.commands import ControlledShutdown, ControlledShutdownResult
from regent.controller.event_merging import EventQueue
from regent.controller.events import PartitionsReleased
from regent.controller.kafka_controller import KafkaController
from regent.controller.state.states import ReplicaState
from regent.controller.topics.topic_commands import process_commands
from regent.model.partition import LeaderAndIsr, TopicPartition
from regent.protocol.error_codes import BROKER_NOT_AVAILABLE, NONE, STALE_BROKER_EPOCH
from regent.zk_data import effects as zk_effects
from regent.zk_data import paths
from regent.zk_data.config import encode_entity_config
from tests.unit.controller.world import World, active_of, leader_and_isr, stop_replica

LED, FOLLOWED, SINGLE, ELSEWHERE = (TopicPartition("t", p) for p in range(4))
SKIPS_EPOCH_CHECK = -1


def cluster(**settings: object) -> tuple[World, ActiveController]:
    """Broker 1 leads LED and SINGLE, follows FOLLOWED, and does not host ELSEWHERE."""
    world = World(**settings)
    world.start_broker(1, 2, 3)
    world.create_led_topic("t", {0: (1, 2, 3), 1: (2, 1), 2: (1,), 3: (2, 3)})
    return world, world.lead()


def shut_down(
    world: World, active: ActiveController, *broker_ids: int
) -> list[ControlledShutdownResult]:
    commands = [ControlledShutdown(b, world.epoch_of(b)) for b in broker_ids]
    return results(world, active, *commands)


def results(
    world: World, active: ActiveController, *commands: ControlledShutdown
) -> list[ControlledShutdownResult]:
    found = []
    for outcome in world.run(process_commands(active, commands)):
        assert isinstance(outcome, Accepted)
        assert isinstance(outcome.result, ControlledShutdownResult)
        found.append(outcome.result)
    return found


class TestOneBroker:
    def test_what_it_leads_is_led_by_the_next_in_sync_replica_and_it_leaves_every_isr(self) -> None:
        world, active = cluster()
        (result,) = shut_down(world, active, 1)
        assert result == ControlledShutdownResult()
        assert world.state(LED) == LeaderAndIsr(2, 6, (2, 3), 1, 1)
        assert world.state(FOLLOWED) == LeaderAndIsr(2, 6, (2,), 1, 1)
        for tp in (LED, FOLLOWED):
            assert active.context.cluster.leadership[tp] == world.state(tp)
        assert active.context.shutting_down_broker_ids == {1}

    def test_what_follows_a_leader_that_stays_is_stopped_before_the_leader_learns_of_it(
        self,
    ) -> None:
        """Else the leader may be answering a fetch of it, and would have it in sync again."""
        world, active = cluster()
        seen: list[list[tuple[int, TopicPartition, int, bool]]] = []

        def look(effect: zk_effects.Effect[object]) -> None:
            path = paths.partition_state(FOLLOWED)
            if isinstance(effect, zk_effects.Write) and path in [
                op.path for op in effect.operations
            ]:
                seen.append(stop_replica(world.driver.sent))

        world.driver.before = look
        shut_down(world, active, 1)
        assert seen == [[(1, FOLLOWED, SKIPS_EPOCH_CHECK, False)]]
        first, rest = world.driver.sent
        assert not leader_and_isr([first])
        assert not first.update_metadata_receivers
        assert stop_replica([rest]) == [(1, LED, SKIPS_EPOCH_CHECK, False)]
        assert {LED, FOLLOWED} <= set(rest.offline_replicas)

    def test_the_former_leader_follows_and_is_stopped_and_the_others_learn_the_rest(self) -> None:
        """It would fetch, and be in the ISR again when it stops (KAFKA-14140)."""
        world, active = cluster()
        shut_down(world, active, 1)
        *_, requests = world.driver.sent
        assert leader_and_isr([requests]) == {
            1: {LED: False},
            2: {LED: False, FOLLOWED: False},
            3: {LED: False},
        }
        assert stop_replica(world.driver.sent) == [
            (1, FOLLOWED, SKIPS_EPOCH_CHECK, False),
            (1, LED, SKIPS_EPOCH_CHECK, False),
        ]
        assert requests.update_metadata_receivers == (1, 2, 3)
        assert list(requests.brokers) == [1, 2, 3]
        for tp in (LED, FOLLOWED):
            assert active.context.replica_state(1, tp) is ReplicaState.OFFLINE

    def test_a_leader_without_a_successor_goes_on_and_is_named(self) -> None:
        world, active = cluster()
        world.set_state(LED, 1, (1,), leader_epoch=5)  # as it has just written
        (result,) = shut_down(world, active, 1)
        assert result.error_code == NONE
        assert result.remaining_partitions == (LED,)
        assert world.state(LED) == LeaderAndIsr(1, 5, (1,), 0, 1)
        assert 1 not in leader_and_isr(world.driver.sent)
        assert LED not in [tp for _, tp, _, _ in stop_replica(world.driver.sent)]

    def test_a_second_request_moves_what_can_be_moved_by_then_and_sends_nothing_else(self) -> None:
        world, active = cluster()
        world.set_state(LED, 1, (1,), leader_epoch=5)
        shut_down(world, active, 1)
        world.driver.take_sent()
        world.set_state(LED, 1, (1, 3), leader_epoch=5)
        (result,) = shut_down(world, active, 1)
        assert result.remaining_partitions == ()
        assert world.state(LED) == LeaderAndIsr(3, 6, (3,), 1, 3)
        assert world.state(FOLLOWED) == LeaderAndIsr(2, 6, (2,), 1, 1)
        (requests,) = world.driver.take_sent()
        assert set(requests.partitions) == {LED}
        shut_down(world, active, 1)
        assert world.driver.take_sent() == []

    def test_topics_that_are_to_be_deleted_are_left_alone(self) -> None:
        world, active = cluster()
        active.context.queue_topic_for_deletion("t")
        (result,) = shut_down(world, active, 1)
        assert result == ControlledShutdownResult()
        assert world.state(LED) == LeaderAndIsr(1, 5, (1, 2, 3), 0, 0)

    def test_a_write_whose_answer_was_lost_is_announced(self) -> None:
        """The client repeats it, and finds another version than it expects."""
        world, active = cluster()
        applied = False

        def write_twice(effect: zk_effects.Effect[object]) -> None:
            nonlocal applied
            if not isinstance(effect, zk_effects.Write) or applied:
                return
            if any(op.path == paths.partition_state(LED) for op in effect.operations):
                applied = True
                world.driver.client.write(effect.operations, guard=effect.guard)

        world.driver.before = write_twice
        (result,) = shut_down(world, active, 1)
        assert result == ControlledShutdownResult()
        assert world.state(LED) == LeaderAndIsr(2, 6, (2, 3), 1, 1)
        assert leader_and_isr(world.driver.sent)[1] == {LED: False}
        assert set(leader_and_isr(world.driver.sent)[2]) == {LED, FOLLOWED}
        assert {tp for b, tp, _, _ in stop_replica(world.driver.sent) if b == 1} == {LED, FOLLOWED}


class TestWhoAsks:
    def test_an_earlier_life_of_the_broker_is_refused(self) -> None:
        world, active = cluster()
        (result,) = results(world, active, ControlledShutdown(1, world.epoch_of(1) - 1))
        assert result.error_code == STALE_BROKER_EPOCH
        assert result.message
        assert not active.context.shutting_down_broker_ids
        assert world.driver.sent == []

    def test_a_broker_that_does_not_know_its_epoch_is_believed(self) -> None:
        world, active = cluster()
        (result,) = results(world, active, ControlledShutdown(1, -1))
        assert result.error_code == NONE
        assert active.context.shutting_down_broker_ids == {1}

    @pytest.mark.parametrize("epoch", [-1, 7])
    def test_one_that_is_not_registered_is_not_available(self, epoch: int) -> None:
        world, active = cluster()
        (result,) = results(world, active, ControlledShutdown(9, epoch))
        assert result.error_code == BROKER_NOT_AVAILABLE
        assert result.message
        assert not active.context.shutting_down_broker_ids

    @pytest.mark.parametrize("restarted", [1, 4])
    def test_one_that_has_just_registered_is_found_before_its_watch_reports_it(
        self, restarted: int
    ) -> None:
        world, active = cluster()
        if restarted == 4:
            world.start_broker(4)
        else:
            world.bounce_broker(1)
        (result,) = shut_down(world, active, restarted)
        assert result.error_code == NONE
        assert active.context.cluster.brokers[restarted].epoch == world.epoch_of(restarted)
        assert active.context.shutting_down_broker_ids == {restarted}

    def test_an_epoch_that_is_not_registered_yet_is_not_available(self) -> None:
        world, active = cluster()
        (result,) = results(world, active, ControlledShutdown(1, world.epoch_of(1) + 1))
        assert result.error_code == BROKER_NOT_AVAILABLE
        assert not active.context.shutting_down_broker_ids


class TestSeveralBrokers:
    def test_they_are_one_set(self) -> None:
        world, active = cluster()
        first, second = shut_down(world, active, 1, 2)
        assert first == ControlledShutdownResult()
        # broker 3 is the only one that stays; FOLLOWED has no replica there
        assert second == ControlledShutdownResult(remaining_partitions=(FOLLOWED,))
        assert world.state(LED) == LeaderAndIsr(3, 6, (3,), 1, 1)
        assert world.state(FOLLOWED) == LeaderAndIsr(2, 6, (2,), 1, 1)
        assert world.state(ELSEWHERE) == LeaderAndIsr(3, 6, (3,), 1, 1)
        assert len(world.driver.sent) == 1


class TestAfterTheAnswer:
    """What no broker needs to wait for."""

    def stopped(self, world: World, active: ActiveController) -> list[dict[str, object]]:
        """Fields of the warnings once broker 1 has been shut down."""
        shut_down(world, active, 1)
        event = world.driver.timers["partitions released by broker 1"].event
        assert isinstance(event, PartitionsReleased)
        world.run(process_partitions_released(active, event))
        return [r.fields for r in world.log.records if r.level == "warning"]

    def test_partitions_whose_isr_is_below_min_insync_replicas_are_named(self) -> None:
        world, active = cluster()
        world.put(paths.topic_config("t"), encode_entity_config({"min.insync.replicas": "2"}))
        (warning,) = self.stopped(world, active)
        assert warning == {"broker": 1, "partitions": 1, "examples": [str(FOLLOWED)]}

    def test_what_cannot_be_read_names_nothing(self) -> None:
        world, active = cluster()
        world.put(paths.topic_config("t"), b"{")
        world.put(paths.broker_config(None), encode_entity_config({"min.insync.replicas": "many"}))
        assert self.stopped(world, active) == []


# Requests of brokers that shut down: several that wait are one set, with an answer for each.


UNKNOWN_EPOCH = -1


def make_world() -> World:
    world = World()
    world.start_broker(1, 2, 3)
    world.create_led_topic("t", {0: (1, 2, 3)}, leader_epoch=0)
    return world


def ask(world: World, controller: KafkaController) -> dict[object, object]:
    """Brokers 1, 9 and 2 ask. The answers by the broker that asked."""
    queue = EventQueue()
    for broker_id in (1, 9, 2):
        command = ControlledShutdown(broker_id, UNKNOWN_EPOCH)
        queue.put(e.commands_received((command,), reply_to=broker_id), now=0)
    assert len(queue) == 1
    world.process(controller, queue.take().event)
    answers = {}
    for given in world.driver.answers:
        (answers[given.reply_to],) = given.answer
    return answers


def test_each_gets_its_own_answer() -> None:
    world = make_world()
    controller = world.active_controller()
    codes = {}
    for broker_id, answer in ask(world, controller).items():
        assert isinstance(answer, Accepted)
        assert isinstance(answer.result, ControlledShutdownResult)
        codes[broker_id] = answer.result.error_code
    assert codes == {1: NONE, 9: BROKER_NOT_AVAILABLE, 2: NONE}
    assert active_of(controller).context.shutting_down_broker_ids == {1, 2}


def refusals(answers: dict[object, object]) -> dict[object, Reason]:
    return {b: answer.reason for b, answer in answers.items() if isinstance(answer, Rejected)}


def test_a_process_that_is_not_the_controller_says_so_to_each() -> None:
    world = make_world()
    answers = ask(world, world.controller())
    assert refusals(answers) == dict.fromkeys((1, 9, 2), Reason.NOT_CONTROLLER)

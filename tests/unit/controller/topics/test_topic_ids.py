"""Topics keep their ids, whoever rewrites their nodes and whenever."""

from __future__ import annotations

import uuid
from collections.abc import Mapping

import pytest

from regent.controller import events as e
from regent.controller.kafka_controller import KafkaController
from regent.controller.state.context import ControllerContext
from regent.model.partition import ReplicaAssignment
from regent.protocol.control_requests import LeaderAndIsrResponse
from regent.protocol.error_codes import INCONSISTENT_TOPIC_ID
from regent.zk_data import paths
from regent.zk_data.topic_ids import TOPIC_IDS
from tests.unit.controller.world import T0, World, active_of, leader_and_isr

ID, OTHER = uuid.UUID(int=77), uuid.UUID(int=88)
ONE = {0: (1, 2)}
TWO = {0: (1, 2), 1: (2, 1)}


class Cluster:
    """Topic t with an id on brokers 1 and 2, led by 1; u without one, where that can be."""

    def __init__(self, protocol: tuple[int, int] = (3, 9)) -> None:
        self.world = World(auto_leader_rebalance_enable=False)
        self.world.driver.inter_broker_protocol = protocol
        self.world.start_broker(1, 2)
        self.world.create_topic("t", ONE, topic_id=ID)
        self.controller: KafkaController = self.world.active_controller()
        self.world.driver.take_sent()

    @property
    def context(self) -> ControllerContext:
        return active_of(self.controller).context

    def rewrite(
        self, assignments: Mapping[int, tuple[int, ...]], topic_id: uuid.UUID | None = None
    ) -> None:
        """Somebody writes the topic node."""
        self.world.create_topic("t", assignments, topic_id=topic_id)

    def fail_over(self) -> None:
        """Another process becomes the controller."""
        self.controller = self.world.active_controller()

    def refuse(self, broker_id: int, *, asked: uuid.UUID | None = None) -> None:
        """A broker hosts t-0 under another id than the one it is asked for; None: the present."""
        self.answer(broker_id, INCONSISTENT_TOPIC_ID, asked=asked)

    def answer(self, broker_id: int, error: int = 0, *, asked: uuid.UUID | None = None) -> None:
        """A broker answers a LeaderAndIsr about t-0."""
        response = LeaderAndIsrResponse(
            broker_id,
            0,
            {T0: error} if error else {},
            {T0: False},
            topic_ids={"t": asked or self.context.cluster.topic_ids["t"]},
        )
        self.world.process(self.controller, e.LeaderAndIsrResponseReceived((response,)))
        self.world.deliver(self.controller)

    def notes(self) -> list[str]:
        return [name.rpartition(",")[0] for name in self.world.zookeeper.children(TOPIC_IDS)]

    def logged(self, beginning: str) -> int:
        return sum(r.message.startswith(beginning) for r in self.world.log.records)


class TestWhileThisProcessLeads:
    @pytest.mark.parametrize("protocol", [(2, 6), (2, 8), (3, 9)])
    def test_an_id_that_a_tool_drops_is_written_back_with_what_the_tool_has_changed(
        self, protocol: tuple[int, int]
    ) -> None:
        cluster = Cluster(protocol)
        cluster.rewrite(TWO)
        cluster.world.deliver(cluster.controller)
        znode = cluster.world.topic("t")
        assert znode.topic_id == ID
        assert znode.assignments == {p: ReplicaAssignment(r) for p, r in TWO.items()}
        assert cluster.context.cluster.topic_ids == {"t": ID}
        assert cluster.context.restored_topic_ids == 1
        assert cluster.logged("Topic ids restored: a client") == 1
        assert all(sent.topic_ids == {"t": ID} for sent in cluster.world.driver.sent)

    def test_another_id_is_replaced_by_the_one_that_brokers_host(self) -> None:
        cluster = Cluster()
        cluster.rewrite(ONE, OTHER)
        cluster.world.deliver(cluster.controller)
        assert cluster.world.topic("t").topic_id == ID
        assert cluster.logged("Topic ids restored: somebody has replaced") == 1
        assert cluster.context.restored_topic_ids == 1

    def test_another_id_counts_if_brokers_refuse_the_known_one(self) -> None:
        """Somebody has put right what a controller got wrong."""
        cluster = Cluster()
        cluster.refuse(2)
        cluster.world.driver.take_sent()
        cluster.rewrite(ONE, OTHER)
        cluster.world.deliver(cluster.controller)
        assert cluster.world.topic("t").topic_id == OTHER
        assert cluster.context.cluster.topic_ids == {"t": OTHER}
        (sent,) = cluster.world.driver.sent
        assert sent.topic_ids == {"t": OTHER}
        assert sent.leader_and_isr == {1: {T0: False}, 2: {T0: False}}
        assert cluster.logged("Topic id is another one than before") == 1
        cluster.rewrite(ONE)
        cluster.fail_over()
        assert cluster.world.topic("t").topic_id == OTHER

    def test_a_topic_that_was_created_again_is_another_one(self) -> None:
        cluster = Cluster()
        cluster.world.delete(paths.topic("t"))
        cluster.rewrite(ONE, OTHER)
        cluster.world.process(cluster.controller, e.PartitionModifications(("t",)))
        assert cluster.world.topic("t").topic_id == OTHER
        assert cluster.context.cluster.topic_ids == {"t": OTHER}
        assert cluster.context.restored_topic_ids == 0


class TestWhileNobodyLeads:
    @pytest.mark.parametrize("protocol", [(2, 8), (3, 9)])
    def test_the_next_failover_writes_the_id_back_before_it_sends_any(
        self, protocol: tuple[int, int]
    ) -> None:
        cluster = Cluster(protocol)
        cluster.rewrite(TWO)
        cluster.fail_over()
        assert cluster.world.topic("t").topic_id == ID
        assert sorted(cluster.world.topic("t").assignments) == [0, 1]
        for sent in cluster.world.driver.sent:
            assert sent.topic_ids == ({"t": ID} if sent.partitions else {})
        assert cluster.context.restored_topic_ids == 1

    def test_below_protocol_2_8_the_upgrade_does(self) -> None:
        """All topics have lost theirs, and nothing says that there ever were any."""
        cluster = Cluster((2, 6))
        cluster.rewrite(ONE)
        cluster.fail_over()
        assert cluster.world.topic("t").topic_id is None
        epoch = cluster.context.term.epoch
        cluster.world.process(cluster.controller, e.InterBrokerProtocolChanged(epoch, (2, 8)))
        assert cluster.world.topic("t").topic_id == ID

    def test_a_topic_of_that_name_that_was_created_since_gets_an_id_of_its_own(self) -> None:
        cluster = Cluster()
        cluster.world.delete(paths.topic("t"))
        cluster.rewrite(ONE)
        cluster.fail_over()
        assert cluster.world.topic("t").topic_id not in (None, ID)
        assert cluster.notes() == ["t"]

    def test_the_id_that_another_controller_gave_instead_is_replaced_once_brokers_refuse_it(
        self,
    ) -> None:
        cluster = Cluster()
        cluster.rewrite(ONE, OTHER)
        cluster.fail_over()
        assert cluster.context.cluster.topic_ids == {"t": OTHER}
        cluster.world.driver.take_sent()
        cluster.refuse(2)
        assert cluster.world.topic("t").topic_id == ID
        assert cluster.context.cluster.topic_ids == {"t": ID}
        assert [sent.topic_ids for sent in cluster.world.driver.sent] == [{"t": ID}]
        assert leader_and_isr(cluster.world.driver.sent) == {1: {T0: False}, 2: {T0: False}}
        assert cluster.context.refusals.count == 0
        cluster.world.driver.take_sent()
        cluster.refuse(1)  # it hosts the other one: there is no third to try, so 2 may have to lead
        assert leader_and_isr(cluster.world.driver.sent) == {2: {T0: False}}
        assert cluster.context.cluster.topic_ids == {"t": ID}
        assert cluster.context.refusals.count == 1

    def test_what_a_broker_says_of_the_replaced_id_is_not_held_against_it(self) -> None:
        """All brokers refuse that one, and their answers are under way when the first counts."""
        cluster = Cluster()
        cluster.rewrite(ONE, OTHER)
        cluster.fail_over()
        cluster.refuse(2, asked=OTHER)
        assert cluster.context.cluster.topic_ids == {"t": ID}
        before = cluster.world.state(T0)
        cluster.refuse(1, asked=OTHER)
        assert cluster.context.refusals.count == 0
        cluster.answer(2)
        assert cluster.world.state(T0) == before, "1 leads, and hosts the topic"
        cluster.refuse(1)
        assert cluster.context.refusals.count == 1


class TestNotes:
    def test_every_topic_with_an_id_is_noted_until_it_is_gone(self) -> None:
        cluster = Cluster()
        assert cluster.notes() == ["t"]
        cluster.world.create_topic("u", ONE)
        cluster.world.deliver(cluster.controller)
        assert cluster.notes() == ["t", "u"]
        cluster.world.delete(paths.topic("t"))
        cluster.world.deliver(cluster.controller)
        assert cluster.notes() == ["u"]

    def test_a_topic_that_cannot_be_read_keeps_its_note(self) -> None:
        cluster = Cluster()
        cluster.world.put(paths.topic("t"), b"?")
        cluster.fail_over()
        assert cluster.notes() == ["t"]

    def test_a_malformed_note_says_nothing(self) -> None:
        cluster = Cluster()
        (name,) = cluster.world.zookeeper.children(TOPIC_IDS)
        cluster.world.put(f"{TOPIC_IDS}/{name}", b'{"topic_id":"?"}')
        cluster.rewrite(ONE)
        cluster.fail_over()
        assert cluster.world.topic("t").topic_id not in (None, ID)
        assert len(cluster.world.log.errors("Malformed notes skipped")) == 1

"""What a KafkaTopic says about the health of its topic."""

from __future__ import annotations

from typing import Any

import msgspec

from regent.controller.view import PartitionHealth, TopicView
from regent.reconcile.topics.plan import TopicPlan
from regent.reconcile.topics.planning import plan_topic
from regent.resources.conditions import ConditionType
from tests.support.present import present
from tests.unit.reconcile.requests import (
    ID,
    READY,
    owned,
    partition,
    request,
    said,
    state,
    status_of,
    view,
)


class TestHealth:
    def _plan(self, *partitions: Any) -> TopicPlan:
        return plan_topic(request(owned(), view(TopicView("orders", ID, partitions)), config={}))

    def test_under_replicated_is_unhealthy_but_ready(self) -> None:
        plan = self._plan(partition(0, (1, 2)), partition(1, (2, 1), (2,)))
        assert state(plan) == {**READY, "Healthy": "False/UnderReplicated"}
        assert [p.partition for p in status_of(plan).partition_states] == [1, 0]

    def test_failed_log_directories_are_named(self) -> None:
        lost = partition(1, (2, 1), leader=-1, state=PartitionHealth.OFFLINE, on_failed_dirs=(2,))
        plan = self._plan(partition(0, (1, 2), (1,), on_failed_dirs=(2,)), lost)
        assert said(plan).message.endswith(
            "on brokers [1, 2]; on failed log directories broker 2 has 1 partitions [1]: mend them "
            "and restart the brokers"
        )
        assert said(plan, ConditionType.HEALTHY).message.endswith(
            "; on failed log directories broker 2 has 2 partitions [0, 1]: mend them and restart "
            "the brokers"
        )

    def test_a_topic_that_a_broker_refuses_is_neither_ready_nor_healthy(self) -> None:
        """ZooKeeper shows a leader and a full ISR all the while."""
        refusal = ((2, "UNKNOWN_SERVER_ERROR"),)
        plan = self._plan(partition(0, (1, 2)), partition(1, (2, 1), refusals=refusal))
        assert state(plan)["Ready"] == "False/ReplicasRefused"
        assert state(plan)["Stalled"] == "True/ReplicasRefused"
        assert state(plan)["Healthy"] == "False/ReplicasRefused"
        assert said(plan, ConditionType.HEALTHY).message == (
            "broker 2 refuses 1 partitions [1] with UNKNOWN_SERVER_ERROR; the broker's log says why"
        )
        assert status_of(plan).partition_states[0].partition == 1

    def test_a_leader_that_was_not_informed_is_none_yet(self) -> None:
        """ZooKeeper shows a leader and a full ISR all the while."""
        plan = self._plan(partition(0, (1, 2)), partition(1, (2, 1), uninformed=(2,)))
        assert state(plan)["Ready"] == "False/BrokersUnreached"
        assert state(plan)["Reconciling"] == "True/BrokersUnreached"
        assert state(plan)["Healthy"] == "False/BrokersUnreached"
        assert said(plan).message == (
            "the controller does not reach brokers [2]: broker 2 has not confirmed that it leads 1 "
            "partitions [1]; `regent status` says why it does not"
        )
        assert status_of(plan).partition_states[0].partition == 1

    def test_no_topic_becomes_ready_before_its_leaders_have_answered_this_controller(self) -> None:
        seen = view(TopicView("orders", ID, (partition(0, (2, 1)), partition(1, (1, 2)))))
        quiet = msgspec.structs.replace(seen, silent=(2,))
        hung = msgspec.structs.replace(seen, unanswered={2: 0, 3: 0})
        for waiting in (quiet, hung):
            plan = plan_topic(request(owned(), waiting, config={}))
            assert state(plan)["Ready"] == "False/BrokersUnreached"
            assert "brokers [2], which lead partitions, have not answered" in said(plan).message
        later = msgspec.structs.replace(seen, unanswered={2: 1})
        assert state(plan_topic(request(owned(), later, config={})))["Ready"] == READY["Ready"]
        ready = present(plan_topic(request(owned(), seen, config={})).status)
        known = owned(status=ready.model_dump(by_alias=True, mode="json"))
        assert state(plan_topic(request(known, quiet, config={})))["Ready"] == READY["Ready"]

    def test_a_follower_that_was_not_informed_is_unhealthy_but_ready(self) -> None:
        plan = self._plan(partition(0, (1, 2), uninformed=(2,)), partition(1, (2, 1)))
        assert state(plan) == {**READY, "Healthy": "False/BrokersUnreached"}
        message = said(plan, ConditionType.HEALTHY).message
        assert "broker 2 has not confirmed that it leads or follows 1 partitions [0]" in message

    def test_the_sample_is_bounded(self) -> None:
        many = [partition(i, (1, 2)) for i in range(50)]
        many[40] = partition(40, (1, 2), (1,))
        many[45] = partition(45, (1, 2), leader=-1, state=PartitionHealth.OFFLINE)
        plan = plan_topic(
            request(owned(partitions=50), view(TopicView("orders", ID, tuple(many))), config={})
        )
        assert [p.partition for p in status_of(plan).partition_states][:4] == [45, 40, 0, 1]
        assert len(status_of(plan).partition_states) == 20

    def test_a_partition_of_very_many_replicas_has_a_status_too(self) -> None:
        """Somebody has written such a list into the topic's node."""
        plan = self._plan(partition(0, tuple(range(1_000)), (0, 1), leader=0))
        (shown,) = status_of(plan).partition_states
        assert shown.replicas == tuple(range(100))

"""Everything that is wrong with a reassignment is said at once, before anything is written."""

from __future__ import annotations

import json
import random
from typing import Any

import msgspec
import pytest

from regent.admin.commands import DescribeTopicConfigs
from regent.controller.view import ClusterView
from regent.reconcile.reassignments.execution import ReassignmentPlan
from regent.reconcile.reassignments.kind import PARTITION_REASSIGNMENT
from regent.reconcile.reassignments.planning import plan_reassignment
from regent.reconcile.reassignments.request import DeclaredReplicas
from regent.resources.partition_reassignment_status import Phase
from tests.unit.reconcile.reassignments.reassigning import (
    assign,
    message,
    moved,
    orders,
    racked,
    request,
    resource,
    with_default,
)
from tests.unit.reconcile.reassignments.rebalances import SEEN, outcome, rebalance, reconciled
from tests.unit.reconcile.requests import state, status_of, topic, view


def plan_of(seen: ClusterView, *, min_insync: str | None = None, **spec: Any) -> ReassignmentPlan:
    config = {} if min_insync is None else {"min.insync.replicas": min_insync}
    configs = dict.fromkeys(seen.topics, config)
    return plan_reassignment(request(resource(**spec), seen, configs=configs))


def problems(plan: ReassignmentPlan) -> list[tuple[str, str]]:
    assert not plan.commands, "nothing is sent"
    return [(problem.reason, problem.field) for problem in status_of(plan).problems]


def plan_json(*entries: Any, **rest: Any) -> str:
    return json.dumps({"version": 1, "partitions": entries, **rest})


def entry(partition: int = 0, *replicas: int, topic: str = "orders", **rest: Any) -> dict[str, Any]:
    return {"topic": topic, "partition": partition, "replicas": list(replicas), **rest}


RACKED = racked(view(orders((1, 3), (1, 2))), "a", "a", "b")

REFUSALS = {
    "a broker twice": (
        view(orders((1, 2))),
        {"assignments": assign((3, 3))},
        ("InvalidReplicaAssignment", "spec.assignments[0]"),
        "a broker is twice in the replica list [3, 3]",
    ),
    "a partition twice": (
        view(orders((1, 2))),
        {"assignments": [*assign((1, 3)), *assign((2, 3))]},
        ("InvalidReplicaAssignment", "spec.assignments[1]"),
        "partition orders-0 is listed twice, in spec.assignments[0], too; keep one",
    ),
    "a rack lost": (
        RACKED,
        {"assignments": assign((1, 2))},
        ("RacksLost", "spec.assignments[0]"),
        "partition orders-0 would go from 2 racks to 1 with the replicas [1, 2]; choose brokers in "
        "other racks, or set spec.racks to Ignore",
    ),
    "no JSON": (
        view(orders((1, 2))),
        {"planJSON": "{..."},
        ("InvalidPlanDocument", "spec.planJSON"),
        "it cannot be read as JSON",
    ),
    "JSON that is nested too deeply": (
        view(orders((1, 2))),
        {"planJSON": "[" * 400_000},
        ("InvalidPlanDocument", "spec.planJSON"),
        "it cannot be read as JSON: it is nested too deeply",
    ),
    "a name that no topic can have": (
        view(orders((1, 2))),
        {"planJSON": plan_json(entry(0, 1, 3, topic="\ud800"))},
        ("InvalidPlanDocument", "spec.planJSON.partitions[0]"),
        "has a character other than ASCII letters",
    ),
    "JSON that is no plan": (
        view(orders((1, 2))),
        {"planJSON": "[1, 2]"},
        ("InvalidPlanDocument", "spec.planJSON"),
        'it is no object with "version": 1 and a list of "partitions"',
    ),
    "another version": (
        view(orders((1, 2))),
        {"planJSON": plan_json(entry(0, 1), version=2)},
        ("InvalidPlanDocument", "spec.planJSON"),
        "version",
    ),
    "an entry without replicas": (
        view(orders((1, 2))),
        {"planJSON": plan_json({"topic": "orders", "partition": 0})},
        ("InvalidPlanDocument", "spec.planJSON.partitions[0]"),
        "it needs a topic, the index of a partition and a list of broker ids",
    ),
    "a broker id that is none": (
        view(orders((1, 2))),
        {"planJSON": plan_json(entry(0, 1, -1))},
        ("InvalidPlanDocument", "spec.planJSON.partitions[0]"),
        "it needs",
    ),
    "no replicas": (
        view(orders((1, 2))),
        {"planJSON": plan_json(entry(0))},
        ("InvalidReplicaAssignment", "spec.planJSON.partitions[0]"),
        "the replica list is empty",
    ),
    "log directories": (
        view(orders((1, 2))),
        {"planJSON": plan_json(entry(0, 1, 3, log_dirs=["any", "/data/1"]))},
        ("InvalidPlanDocument", "spec.planJSON.partitions[0]"),
        "log directories cannot be chosen; leave log_dirs out",
    ),
}

WAITS = {
    "a topic that does not exist": (
        view(orders((1, 2))),
        {"assignments": assign((1, 3), topic="payments")},
        ("UnknownTopic", "spec.assignments[0]"),
        "there is no topic payments; it is waited for",
    ),
    "a topic that cannot be read": (
        view(orders((1, 2)), unreadable={"payments": "not JSON"}),
        {"assignments": assign((1, 3), topic="payments")},
        ("TopicsUnreadable", "spec.assignments[0]"),
        "the node of topic payments cannot be read: not JSON; its repair is waited for",
    ),
    "a partition that cannot be read": (
        view(orders((1, 2)), unreadable={"orders": "partition 1: a replica is no number"}),
        {"assignments": assign(None, (1, 3))},
        ("TopicsUnreadable", "spec.assignments[0]"),
        "the node of topic orders cannot be read: partition 1: a replica is no number; its repair "
        "is waited for",
    ),
    "a partition that does not exist": (
        view(orders((1, 2))),
        {"assignments": assign(None, (1, 3))},
        ("UnknownTopic", "spec.assignments[0]"),
        "topic orders has no partition orders-1; it is waited for",
    ),
    "a topic that is being deleted": (
        view(topic((1, 2), deleting=True)),
        {"replicationFactor": {"orders": 3}},
        ("UnknownTopic", "spec.replicationFactor[orders]"),
        "topic orders is being deleted",
    ),
    "a broker that is not alive": (
        view(orders((1, 2))),
        {"assignments": assign((1, 9))},
        ("BrokersUnavailable", "spec.assignments[0]"),
        "partition orders-0 goes to brokers [9], which are not alive or shut down; alive are "
        "[1, 2, 3]",
    ),
    "a broker that shuts down": (
        msgspec.structs.replace(view(orders((1, 2))), shutting_down=(3,)),
        {"assignments": assign((1, 3))},
        ("BrokersUnavailable", "spec.assignments[0]"),
        "alive are [1, 2]",
    ),
    "a broker that is being drained": (
        msgspec.structs.replace(view(orders((1, 2))), cordoned=(3,)),
        {"assignments": assign((1, 3))},
        ("BrokersCordoned", "spec.assignments[0]"),
        "partition orders-0 goes to brokers [3], which a BrokerDrain has cordoned; choose others, "
        "or delete the BrokerDrain",
    ),
    "too few brokers that are not being drained": (
        msgspec.structs.replace(view(orders((1, 2))), cordoned=(3,)),
        {"replicationFactor": {"orders": 3}},
        ("NotEnoughBrokers", "spec.replicationFactor[orders]"),
        "3 replicas need as many brokers; alive and not cordoned are [1, 2]",
    ),
    "a partition that is being moved": (
        view(orders(moved(0, (1, 2), (2, 3)))),
        {"assignments": assign((2, 3))},
        ("ReassignmentInProgress", "spec.assignments[0]"),
        "partition orders-0 is being moved already; its plan is made when it has arrived",
    ),
    "too few brokers": (
        view(orders((1, 2))),
        {"replicationFactor": {"orders": 4}},
        ("NotEnoughBrokers", "spec.replicationFactor[orders]"),
        "4 replicas need as many brokers; alive and not cordoned are [1, 2, 3]",
    ),
}


@pytest.mark.parametrize(
    ("seen", "spec", "problem", "text"), REFUSALS.values(), ids=REFUSALS.keys()
)
def test_what_only_a_change_of_the_resource_heals_is_refused(
    seen: ClusterView, spec: dict[str, Any], problem: tuple[str, str], text: str
) -> None:
    plan = plan_of(seen, **spec)
    assert problems(plan) == [problem]
    assert f"{problem[1]}: " in message(plan)
    assert text in message(plan)
    assert state(plan)["Stalled"] == f"True/{problem[0]}"
    assert state(plan)["PlanReady"] == f"False/{problem[0]}"
    assert status_of(plan).phase is Phase.INVALID


@pytest.mark.parametrize(("seen", "spec", "problem", "text"), WAITS.values(), ids=WAITS.keys())
def test_what_the_cluster_may_heal_is_waited_for(
    seen: ClusterView, spec: dict[str, Any], problem: tuple[str, str], text: str
) -> None:
    plan = plan_of(seen, **spec)
    assert problems(plan) == [problem]
    assert text in message(plan)
    assert state(plan)["Reconciling"] == f"True/{problem[0]}"
    assert state(plan)["Stalled"].startswith("False/")
    assert status_of(plan).phase is Phase.PENDING


def test_fewer_replicas_than_min_insync_replicas_are_refused() -> None:
    seen = with_default(view(orders((1, 2, 3))), "1")
    plan = plan_of(seen, min_insync="2", replicationFactor={"orders": 1})
    assert problems(plan) == [("BelowMinInsyncReplicas", "spec.replicationFactor[orders]")]
    assert "would have 1 replicas, fewer than min.insync.replicas=2" in message(plan)
    assert problems(plan_of(seen, min_insync="2", replicationFactor={"orders": 2})) == []
    assert problems(plan_of(seen, min_insync="no number", replicationFactor={"orders": 1})) == []


def test_where_a_topic_does_not_say_it_min_insync_replicas_of_the_brokers_counts() -> None:
    seen = view(orders((1, 2, 3)))
    fewer: dict[str, Any] = {"replicationFactor": {"orders": 1}}
    plan = plan_of(with_default(seen, "2"), **fewer)
    assert problems(plan) == [("BelowMinInsyncReplicas", "spec.replicationFactor[orders]")]
    assert "fewer than min.insync.replicas=2, the brokers' default" in message(plan)
    assert problems(plan_of(with_default(seen, "1"), **fewer)) == []
    assert problems(plan_of(with_default(seen, "2"), min_insync="1", **fewer)) == []


def test_fewer_replicas_wait_until_a_broker_has_said_how_many_are_needed() -> None:
    seen = view(orders((1, 2, 3)))
    plan = plan_of(seen, replicationFactor={"orders": 2})
    assert problems(plan) == [("BrokerDefaultsUnknown", "spec.replicationFactor[orders]")]
    assert state(plan)["Reconciling"].startswith("True")
    assert problems(plan_of(seen, assignments=assign((1, 2, 4)))) == [
        ("BrokersUnavailable", "spec.assignments[0]")
    ]


def test_the_configurations_of_all_topics_are_read_before_anything_is_planned() -> None:
    seen = view(orders((1, 2)), topic((1, 2), name="payments"))
    subject = resource(assignments=[*assign((1, 3)), *assign((1, 3), topic="payments")])
    plan = plan_reassignment(request(subject, seen, configs={"orders": {}}))
    assert plan.commands == (DescribeTopicConfigs(("payments",)),)
    assert plan.status is None


def test_topics_that_the_namespace_may_not_declare_are_refused_and_nothing_is_said_of_them() -> (
    None
):
    subject = resource(assignments=[*assign((1, 3)), *assign((1, 9), topic="secret")])
    asked = request(subject, view(orders((1, 2))), rules=["shop=orders"])
    plan = plan_reassignment(asked)
    assert problems(plan) == [("TopicNameNotAllowed", "spec.assignments[1]")]
    assert "topic_name_rules do not let namespace shop move topic secret" in message(plan)
    whole = resource(replicationFactor={"secret": 3})
    plan = plan_reassignment(request(whole, view(orders((1, 2))), rules=["shop=orders"]))
    assert problems(plan) == [("TopicNameNotAllowed", "spec.replicationFactor[secret]")]


def test_new_plan_is_refused_when_the_rules_forbid_a_topic_of_it() -> None:
    subject = rebalance()
    plan = reconciled(subject, SEEN, outcome(subject), rules=("shop=others",))
    assert (status_of(plan).phase, status_of(plan).plan, plan.commands) == (Phase.INVALID, None, ())
    assert {each.reason for each in status_of(plan).problems} == {"TopicNameNotAllowed"}


@pytest.mark.parametrize(
    ("asked", "declared", "found"),
    [((1, 2, 3), 2, True), ((1,), 2, True), ((1, 3), 2, False), ((1, 2, 3), 3, False)],
)
def test_a_number_of_replicas_that_a_kafkatopic_would_restore_is_refused(
    asked: tuple[int, ...], declared: int, found: bool
) -> None:
    said = {"orders": DeclaredReplicas("shop/orders", declared)}
    subject = resource(assignments=assign(asked))
    seen = with_default(view(orders((1, 2))), "1")
    plan = plan_reassignment(request(subject, seen, declared=said))
    assert problems(plan) == [("ResourceConflict", "spec.assignments[0]")] * found
    assert state(plan)["Stalled"].startswith("True") == found


def test_a_kafkatopic_does_not_keep_replicas_from_moving() -> None:
    said = {"orders": DeclaredReplicas("shop/orders", 3)}  # which the topic does not have yet
    subject = resource(assignments=assign((1, 3)))
    plan = plan_reassignment(request(subject, view(orders((1, 2))), declared=said))
    assert problems(plan) == []


def test_all_that_is_wrong_is_said_at_once() -> None:
    seen = racked(view(orders((1, 3), (1, 2))), "a", "a", "b")
    plan = plan_of(
        seen,
        min_insync="2",
        assignments=[*assign((2,), (7, 7)), *assign((1, 3), topic="payments")],
    )
    assert sorted(problems(plan)) == [
        ("BelowMinInsyncReplicas", "spec.assignments[0]"),
        ("BrokersUnavailable", "spec.assignments[1]"),
        ("InvalidReplicaAssignment", "spec.assignments[1]"),
        ("UnknownTopic", "spec.assignments[2]"),
    ]
    assert message(plan).startswith("4 problems, listed in status.problems: ")
    assert state(plan)["Stalled"].startswith("True/"), "waiting alone heals it not"


@pytest.mark.parametrize(
    "seen",
    [
        racked(view(orders((1, 3))), None, None, None),
        racked(view(orders((1, 3))), "a", None, "b"),
        racked(view(orders((9, 3))), "a", "a", "b"),  # broker 9 is down: its rack is not known
    ],
)
def test_racks_that_are_not_known_are_no_reason(seen: ClusterView) -> None:
    assert problems(plan_of(seen, assignments=assign((1, 2)))) == []


def test_a_dead_broker_hides_no_rack_that_is_lost() -> None:
    seen = racked(view(orders((1, 2, 9))), "a", "b", None, "a", "a")
    plan = plan_of(seen, assignments=assign((1, 4, 5)))
    assert problems(plan) == [("RacksLost", "spec.assignments[0]")]
    assert "would go from 2 racks to 1" in message(plan)
    assert problems(plan_of(seen, assignments=assign((1, 4, 9)))) == []


def test_a_plan_that_cannot_be_stored_is_refused() -> None:
    chance = random.Random(1)
    names = [chance.randbytes(100).hex() for _ in range(5000)]
    seen = view(*(topic((1, 2), name=name) for name in names))
    given = [entry(0, 2, 1, topic=name) for name in names]
    plan = plan_of(seen, assignments=given)
    assert problems(plan) == [("TooLarge", "")]
    assert "divide it into several PartitionReassignments" in message(plan)
    assert problems(plan_of(seen, assignments=given[:1000])) == []


def test_the_topics_of_a_resource_are_found_without_a_valid_spec() -> None:
    def subjects(**spec: Any) -> tuple[str, ...]:
        return PARTITION_REASSIGNMENT.subjects({"metadata": {"name": "x"}, "spec": spec})

    assert subjects(assignments=[entry(0, 1), entry(1, 1), entry(0, 1, topic="b")]) == (
        "orders",
        "b",
    )
    assert subjects(planJSON=plan_json(entry(0, 1))) == ("orders",)
    assert subjects(replicationFactor={"a": 1, "b": 2}) == ("a", "b")
    assert subjects(assignments=[1, {"topic": 2}], planJSON="{", replicationFactor=[]) == ()
    assert subjects(planJSON="[]") == subjects(planJSON='{"partitions": {}}') == ()
    assert subjects(planJSON="[" * 400_000) == (), "it must not keep the others from being listed"
    assert PARTITION_REASSIGNMENT.subjects({"metadata": {"name": "x"}}) == ()

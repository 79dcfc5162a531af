"""What brokers' settings mean for new topics."""

from __future__ import annotations

import pytest

from regent.controller.view import ClusterView
from regent.endpoint.topic_requests import (
    NewTopic,
    creation_policy_problem,
    creation_problem,
)
from regent.model.cluster import Broker
from regent.model.topic_config import BrokerFacts
from regent.protocol.error_codes import POLICY_VIOLATION
from tests.support.broker_settings import view_of


def test_a_policy_that_only_brokers_can_run_lets_no_topic_be_created() -> None:
    policy = {"create.topic.policy.class.name": "com.example.Policy"}
    problem = creation_policy_problem(view_of({}, policy))
    assert problem is not None
    assert problem.code == POLICY_VIOLATION
    assert problem.message is not None
    assert "com.example.Policy" in problem.message
    assert creation_policy_problem(view_of({}, policy, live=(1,))) is None
    assert creation_policy_problem(view_of({"create.topic.policy.class.name": ""})) is None


@pytest.mark.parametrize("name", ["", ".", "a b", "x" * 250])
def test_name_is_refused_in_words_of_the_release(name: str) -> None:
    for version, words in (((3, 2), ("illegal", "cannot be")), ((3, 3), ("invalid",))):
        facts = BrokerFacts(broker_id=1, versions=(version,), has_answered=True)
        view = ClusterView(
            is_active=True,
            brokers={1: Broker(1, epoch=1, endpoints=())},
            broker_facts=(facts,),
        )
        problem = creation_problem(view, NewTopic(name, 1, 1, {}, {}))
        assert problem is not None
        assert any(word in str(problem.message) for word in words)

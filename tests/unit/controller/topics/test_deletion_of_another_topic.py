"""Deletions of topics that are other ones by now than those that were meant."""

from __future__ import annotations

from regent.controller import effects
from regent.controller.commands import Accepted, DeleteTopic, Reason, Rejected
from regent.zk_data import paths
from tests.unit.controller.processes import denying
from tests.unit.controller.topics.test_topic_commands import ask, cluster


def test_the_transaction_that_created_its_node_tells_topics_without_ids_apart() -> None:
    world, active = cluster()
    node = world.node(paths.topic("t"))
    (refused,) = ask(world, active, DeleteTopic("t", czxid=node.czxid + 1))
    assert isinstance(refused, Rejected)
    assert refused.reason is Reason.UNKNOWN_TOPIC
    assert "another one by now" in refused.message
    assert world.zookeeper.children(paths.DELETE_TOPICS) == ()
    assert ask(world, active, DeleteTopic("t", czxid=node.czxid)) == (Accepted(),)


def test_a_node_that_may_not_be_read_does_not_say_that_it_is_another_one() -> None:
    world, active = cluster()
    world.driver.before = denying(paths.topic("t"), effects.ReadData)
    assert ask(world, active, DeleteTopic("t", czxid=77)) == (Accepted(),)

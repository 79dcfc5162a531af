"""Brokers that ask for an ISR change on a later state than ours: another controller leads, or
ZooKeeper has lost that state.

NOT_CONTROLLER has brokers send the whole request again, with the changes of all partitions.
"""

from __future__ import annotations

import uuid

import pytest

from regent.controller.partitions.senders_ahead import AHEAD, LEFT_AHEAD, OF_FORMER_TOPICS
from regent.controller.transitions.partition_epochs import WRITES_MAX
from regent.model.errors import ControllerMovedError
from regent.protocol.error_codes import INVALID_UPDATE_VERSION
from tests.unit.controller.partitions.test_alter_partition import (
    EPOCH,
    ID,
    ask,
    change,
    cluster,
    error_of,
    request,
)
from tests.unit.controller.world import T0, T1


def test_of_a_former_controller_it_is_told_to_ask_another_one() -> None:
    world, active = cluster()
    world.elect_rival()
    with pytest.raises(ControllerMovedError):
        ask(world, active, request(active, change(1, leader_epoch=EPOCH + 1)))
    assert active.context.cluster.leadership[T0].leader_epoch == EPOCH
    assert world.driver.sent == []


@pytest.mark.parametrize(
    "ahead",
    [
        {"leader_epoch": EPOCH + 7},
        {"partition_epoch": 9},
        {"leader_epoch": EPOCH + 7, "partition_epoch": 9},
        {"leader_epoch": EPOCH - 1, "partition_epoch": 9},
    ],
    ids=lambda ahead: " and ".join(ahead),
)
@pytest.mark.parametrize("topic", ["t", ID], ids=["by name", "by id"])
def test_the_leader_gets_a_leader_epoch_above_its_own_and_a_partition_epoch_not_below(
    ahead: dict[str, int], topic: str | uuid.UUID
) -> None:
    world, active = cluster()
    wanted = change(1, topic=topic, **ahead)
    assert error_of(ask(world, active, request(active, wanted))) == INVALID_UPDATE_VERSION
    state = world.state_of(T0)
    assert (state.leader, state.isr) == (1, (1, 2))
    assert state.leader_epoch == max(wanted.leader_epoch, EPOCH) + 1
    assert state.partition_epoch == max(wanted.partition_epoch, 1)
    (sent,) = world.driver.sent
    assert sent.partitions[T0].leader_and_isr == state
    assert set(sent.leader_and_isr) == {1, 2, 3}
    (said,) = world.log.warnings(AHEAD)
    assert said["examples"] == [
        f"t-0: broker 1 has leader epoch {wanted.leader_epoch} and partition epoch "
        f"{wanted.partition_epoch}; ZooKeeper has {EPOCH} and 0"
    ]


def test_what_is_stored_counts_if_we_were_behind() -> None:
    """Somebody else than a controller has written the state, and the sender has read it."""
    world, active = cluster()
    world.set_state(T0, 1, (1, 2, 3), leader_epoch=EPOCH + 1)
    wanted = change(1, 2, 3, leader_epoch=EPOCH + 1, partition_epoch=1)
    assert error_of(ask(world, active, request(active, wanted))) == 0
    assert active.context.cluster.leadership[T0] == world.state(T0)
    assert active.context.unannounced_isr_changes == {T0: None}


def test_one_that_does_not_lead_changes_nothing() -> None:
    """A replica of a former topic of that name, for instance: what it has is not preferred to
    the leader's."""
    world, active = cluster()
    wanted = change(1, partition=1, leader_epoch=EPOCH + 3)
    assert error_of(ask(world, active, request(active, wanted))) == INVALID_UPDATE_VERSION
    assert active.context.cluster.leadership[T1].leader_epoch == EPOCH
    assert world.driver.sent == []
    (said,) = world.log.errors(LEFT_AHEAD)
    assert said["examples"] == [
        "t-1: broker 1, at leader epoch 8 and partition epoch 0; ZooKeeper has leader 2 at 5 and 0"
    ]


def test_one_that_led_a_topic_that_was_deleted_need_not_be_restarted() -> None:
    """Its request was on the way when the topic was deleted, and created again."""
    world, active = cluster()
    active.context.cluster.former_partitions.add([T1])
    wanted = change(1, partition=1, leader_epoch=EPOCH + 3)
    assert error_of(ask(world, active, request(active, wanted))) == INVALID_UPDATE_VERSION
    assert world.log.errors(LEFT_AHEAD) == []
    (said,) = [entry.fields for entry in world.log.records if entry.message == OF_FORMER_TOPICS]
    assert said["examples"] == ["t-1: broker 1"]


@pytest.mark.parametrize(
    "ahead",
    [{"leader_epoch": 2**31 - 2}, {"partition_epoch": WRITES_MAX + 1}],
    ids=["would soon be used up", "many writes behind"],
)
def test_epochs_that_are_too_high_are_not_followed(ahead: dict[str, int]) -> None:
    world, active = cluster()
    wanted = change(1, **ahead)
    assert error_of(ask(world, active, request(active, wanted))) == INVALID_UPDATE_VERSION
    assert active.context.cluster.leadership[T0] == world.state(T0)
    assert active.context.cluster.leadership[T0].leader_epoch == EPOCH
    assert world.driver.sent == []
    (said,) = world.log.errors(LEFT_AHEAD)
    assert said["examples"] == [
        f"t-0: broker 1, at leader epoch {wanted.leader_epoch} and partition epoch "
        f"{wanted.partition_epoch}; ZooKeeper has leader 1 at 5 and 0"
    ]


def test_a_leader_whose_state_was_set_back_while_we_led_goes_on() -> None:
    world, active = cluster()
    world.set_state(T0, 1, (1, 2), leader_epoch=EPOCH - 2)
    assert error_of(ask(world, active, request(active, change(1)))) == INVALID_UPDATE_VERSION
    assert world.state_of(T0).leader_epoch == EPOCH + 1
    assert len(world.log.warnings(AHEAD)) == 1

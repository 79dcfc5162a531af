"""What `regent why` tells of what happened to a cluster is what happened."""

from __future__ import annotations

import json

from regent.controller import events as e
from regent.controller.commands import ControlledShutdown
from regent.controller.state.causes import CauseKind, ChangeKind
from regent.protocol.control_requests import LeaderAndIsrResponse
from regent.protocol.error_codes import KAFKA_STORAGE_ERROR
from regent.status.sentences import reason_of_absence
from regent.status.why import ExitStatus, exit_status, tell
from regent.zk_data import paths
from tests.support.broker_znodes import encode_isr_change_notification
from tests.unit.controller.world import World
from tests.unit.status.telling import (
    BEGAN,
    BEGAN_MS,
    LATER,
    T0,
    T1,
    UNCLEAN,
    active_context,
    cluster,
    configure,
    report_on,
    story,
)


def tells(told: list[str], *texts: str) -> bool:
    """Whether a story has all texts; those that are missing are printed."""
    missing = [text for text in texts if text not in "\n".join(told)]
    print("missing:", missing, "in:", *told, sep="\n")
    return not missing


class TestTrueStories:
    def test_nothing_has_happened(self) -> None:
        world, controller = cluster()
        assert story(world, "t-0", controller) == [
            "",
            "t-0: broker 1 leads; leader epoch 5, ISR [1, 2, 3], replicas [1, 2, 3].",
            f"  It has not changed since controller epoch 1 began at {BEGAN}.",
            "  ZooKeeper: last changed at 1970-01-01T00:00:02.000Z (the last controller to change "
            "it had epoch 0), created at 1970-01-01T00:00:01.000Z.",
        ]

    def test_a_crash_and_the_return(self) -> None:
        world, controller = cluster()
        broker = active_context(controller).cluster.brokers[1]
        world.stop_broker(1)
        world.deliver(controller)
        session = f"0x{broker.session_id:x}"
        assert story(world, "t-0", controller) == [
            "",
            "t-0: broker 2 leads; leader epoch 6, ISR [2, 3], replicas [1, 2, 3].",
            f"  Broker 1 is not in the ISR since {LATER}: it failed. It is down since {LATER}.",
            f"  Since controller epoch 1 began at {BEGAN}:",
            "    Before: broker 1 led; leader epoch 5, ISR [1, 2, 3], as of controller epoch 0.",
            f"    {LATER}  Broker 1 failed: ZooKeeper session {session} ended. Broker 2 was "
            "elected leader from the ISR. Leader epoch 6, ISR [2, 3].",
        ]
        world.start_broker(1)
        world.deliver(controller)
        world.set_state(T0, 2, (2, 3, 1), leader_epoch=6, controller_epoch=1)
        notification = paths.isr_change_notification("isr_change_0000000001")
        world.put(notification, encode_isr_change_notification([T0]))
        world.deliver(controller)
        assert story(world, "t-0", controller)[-1] == (
            f"    {LATER}  The leader, broker 2, took broker 1 into the ISR. Leader epoch 6, "
            "ISR [2, 3, 1]."
        )

    def test_a_broker_that_stops_in_order(self) -> None:
        world, controller = cluster()
        request = e.commands_received((ControlledShutdown(1, -1),), reply_to="token")
        world.process(controller, request)
        stopping = f"  Broker 1 is not in the ISR since {LATER}: it was stopping. It is "
        assert tells(
            story(world, "t-0", controller),
            f"{stopping}stopping since {LATER}.",
            "Broker 1 is stopping (controlled shutdown). Broker 2 was elected leader",
        )
        request = e.commands_received((ControlledShutdown(3, -1),), reply_to="token")
        world.process(controller, request)
        assert tells(story(world, "t-1", controller), "Broker 3 was taken out of the ISR.")
        world.stop_broker(1)
        world.deliver(controller)
        assert tells(story(world, "t-0", controller), f"{stopping}down since {LATER}.")

    def test_a_leader_that_has_a_replica_of_a_former_topic(self) -> None:
        cause = {"kind": CauseKind.LEADER_OF_FORMER_TOPIC, "brokers": [{"id": 1}]}
        change = {"kind": ChangeKind.REPLICA_OFFLINE, "cause": cause}
        assert "another topic of that name" in str(reason_of_absence(1, change))

    def test_a_follower_that_fell_behind_before_the_leader_failed(self) -> None:
        world, controller = cluster()
        world.set_state(T0, 1, (1, 2), leader_epoch=5)
        world.stop_broker(1)
        world.deliver(controller)
        told = story(world, "t-0", controller)
        assert tells(
            told,
            f"Broker 1 is not in the ISR since {LATER}: it failed. It is down since {LATER}.",
            f"Broker 3 is not in the ISR since {LATER}: the leader took it out, because it stopped",
        )
        assert "By then the leader, broker 1, had taken broker 3 out of the ISR" in told[-2]
        assert "Broker 1 failed: ZooKeeper session" in told[-1]

    def test_an_offline_partition_and_what_would_help(self) -> None:
        world, controller = cluster()
        configure(world, min_insync_replicas="2")
        world.stop_broker(3)
        world.deliver(controller)
        assert tells(
            story(world, "t-1", controller),
            "The ISR has 1 of the 2 replicas of min.insync.replicas: producers with acks=all are",
        )
        world.stop_broker(2)
        world.deliver(controller)
        world.start_broker(3)
        world.deliver(controller)
        assert tells(
            story(world, "t-1", controller),
            "t-1: offline, nobody leads; leader epoch 7, ISR [2], replicas [2, 3].",
            "It comes online when broker 2 returns: only broker 2 has every acknowledged record.",
            "An unclean election would make broker 3 the leader",
            "The ISR keeps its last member, broker 2. The partition lost its leader.",
        )
        assert exit_status(report_on(world, "t", controller)) is ExitStatus.OFFLINE_PARTITIONS

    def test_an_unclean_election(self) -> None:
        world, controller = cluster()
        world.set_state(T1, 2, (2,), leader_epoch=5)
        configure(world, **{UNCLEAN.replace(".", "_"): "true"})
        world.deliver(controller)
        world.stop_broker(2)
        world.deliver(controller)
        assert tells(
            story(world, "t-1", controller),
            f"since {LATER}: an unclean election left it out.",
            "Broker 3 was elected leader from outside the ISR [2] (unclean election): "
            "acknowledged records may be lost.",
        )

    def test_a_failed_log_directory(self) -> None:
        world, controller = cluster()
        for replica in (3, 2):
            answer = LeaderAndIsrResponse(replica, 0, {T1: KAFKA_STORAGE_ERROR}, {T1: False})
            world.process(controller, e.LeaderAndIsrResponseReceived((answer,)))
        assert tells(
            story(world, "t-1", controller),
            "Its replica on broker 2 is on a failed log directory: it comes online when the",
            f"since {LATER}: it lost the log directory. It is live, and its replica is on a failed",
        )
        world.set_state(T0, 1, (1, 2), leader_epoch=5)
        # A failed log directory is not taken for a start of the broker.
        assert tells(story(world, "t-0", controller), ". It is live, and has not caught up.")

    def test_a_replica_that_is_being_added_is_not_missing_since_the_term_began(self) -> None:
        world, controller = cluster()
        world.start_broker(4)
        world.deliver(controller)
        wanted = [{"topic": "t", "partition": 0, "replicas": [2, 3, 4]}]
        world.put(paths.REASSIGN_PARTITIONS, json.dumps({"partitions": wanted}).encode())
        world.deliver(controller)
        assert tells(
            story(world, "t-0", controller),
            "Broker 4 is being added and not in the ISR yet. It is live since",
            "A reassignment is in progress: it adds broker 4 and removes broker 1.",
            "The partition is being reassigned. Regent raised the leader epoch; broker 1 leads.",
        )

    def test_what_the_failover_did(self) -> None:
        world = World()
        world.driver.now_ms = BEGAN_MS
        world.start_broker(2, 3)
        world.create_topic("t", {0: (1, 2, 3), 1: (3, 1)})
        world.set_state(T0, 1, (1, 2, 3), leader_epoch=5)
        world.set_state(T1, 3, (3,), leader_epoch=5)
        controller = world.active_controller()
        told = story(world, "t", controller)
        assert told[0] == "Topic t: 2 partitions, 2 under-replicated."
        assert (
            f"  Broker 1 is not in the ISR since {BEGAN}: it was offline when Regent became the "
            "controller. It is down." in told
        )
        assert (
            f"  Broker 1 is not in the ISR since before {BEGAN}, when Regent became the "
            "controller. It is down." in told
        )
        assert any("Regent became the controller. " in line for line in told)

    def test_a_topic_that_is_gone(self) -> None:
        world, controller = cluster()
        world.delete(paths.topic("t"))
        world.deliver(controller)
        assert story(world, "t", controller) == [
            "There is no topic or partition 't' in ZooKeeper.",
            f"Topic 't' was removed from ZooKeeper by somebody else, observed at {LATER}.",
        ]

    def test_a_topic_that_is_being_deleted_and_whom_that_waits_for(self) -> None:
        world, controller = cluster()
        world.stop_broker(3)
        world.deliver(controller)
        world.mark_for_deletion("t")
        world.deliver(controller)
        report = report_on(world, "t", controller)
        told = list(tell(report))
        assert told[1] == "The topic is marked for deletion, which waits for broker 3 to return."
        assert any("The topic is being deleted. " in line for line in told)
        assert not any("unclean" in line for line in told)
        assert exit_status(report) is ExitStatus.EXPLAINED

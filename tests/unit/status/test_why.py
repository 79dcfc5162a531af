"""What `regent why` tells of what happened to a cluster, from the controller to the sentences."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Any

import pytest

from regent.controller import events as e
from regent.controller.commands import ControlledShutdown
from regent.controller.kafka_controller import KafkaController
from regent.controller.state.causes import CauseKind, ChangeKind
from regent.model.partition import TopicPartition
from regent.protocol.control_requests import LeaderAndIsrResponse
from regent.protocol.error_codes import KAFKA_STORAGE_ERROR
from regent.runtime.state_change_report import state_change_report
from regent.status.cluster import read_brokers, read_controller
from regent.status.reader import ClusterReader
from regent.status.sentences import cause_sentence, change_sentences, removed_sentence
from regent.status.topic import Target, read_topic, resolve
from regent.status.why import ExitStatus, exit_status, tell
from regent.zk_data import paths
from regent.zk_data.config import encode_entity_config
from regent.zk_data.operations import DatedZNode, ZNode
from tests.simulation.zookeeper import InMemoryZooKeeper
from tests.support.broker_znodes import encode_isr_change_notification
from tests.unit.controller.world import World, two_partitions

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
BEGAN_MS, LATER_MS = 1_000_000_000, 1_000_060_123
BEGAN, LATER = "1970-01-12T13:46:40.000Z", "1970-01-12T13:47:40.123Z"
UNCLEAN = "unclean.leader.election.enable"


class Reads:
    """Reads of an in-memory ZooKeeper, of which every node was created and changed long ago."""

    def __init__(self, zookeeper: InMemoryZooKeeper) -> None:
        self._zookeeper = zookeeper

    async def exists(self, paths: Sequence[str]) -> Sequence[bool]:
        return [self._zookeeper.get(path) is not None for path in paths]

    async def get_data(self, paths: Sequence[str]) -> Sequence[ZNode | None]:
        return [self._zookeeper.get(path) for path in paths]

    async def get_dated(self, paths: Sequence[str]) -> Sequence[DatedZNode | None]:
        nodes = await self.get_data(paths)
        return [None if node is None else DatedZNode(node, 1_000, 2_000) for node in nodes]

    async def get_children(self, paths: Sequence[str]) -> Sequence[Sequence[str] | None]:
        return [self._zookeeper.children(path) for path in paths]


def cluster() -> tuple[World, KafkaController]:
    return two_partitions(later_ms=LATER_MS, began_ms=BEGAN_MS)


def configure(world: World, **config: str) -> None:
    settings = {name.replace("_", "."): value for name, value in config.items()}
    world.put(paths.topic_config("t"), encode_entity_config(settings))
    world.notify_config_change("topics/t")


def report_on(
    world: World, text: str, controller: KafkaController | None = None, partition: int | None = None
) -> dict[str, Any]:
    """As `regent why --json` prints it; without a controller nobody could be asked."""

    async def read() -> dict[str, Any]:
        reader, problems = ClusterReader(Reads(world.zookeeper), ""), []  # type: ignore[var-annotated]
        brokers = await read_brokers(reader, problems) or []
        target = await resolve(reader, text) if partition is None else Target(text, partition)
        regent: Any = None
        if controller is not None and controller.active is not None:
            found = state_change_report(controller.active.context, target.topic, target.partition)
            regent = json.loads(json.dumps(found))
        changed = [p["partition"] for p in regent["partitions"] if p["changes"]] if regent else []
        return {
            "controller": await read_controller(reader, brokers, problems),
            "liveBrokers": [broker["id"] for broker in brokers],
            "problems": problems,
            "target": str(target),
            "remark": target.remark,
            "topic": await read_topic(reader, target, changed=changed, problems=problems),
            "regent": regent,
            "regentProblem": None if regent else "no Regent answers at http://regent",
        }

    return asyncio.run(read())


def story(
    world: World, text: str, controller: KafkaController | None = None, partition: int | None = None
) -> list[str]:
    return list(tell(report_on(world, text, controller, partition)))


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
        assert story(world, "t-0", controller) == [
            "",
            "t-0: broker 2 leads; leader epoch 6, ISR [2, 3], replicas [1, 2, 3].",
            f"  Broker 1 is not in the ISR since {LATER}: it was stopping. It is stopping since "
            f"{LATER}.",
            f"  Since controller epoch 1 began at {BEGAN}:",
            "    Before: broker 1 led; leader epoch 5, ISR [1, 2, 3], as of controller epoch 0.",
            f"    {LATER}  Broker 1 is stopping (controlled shutdown). Broker 2 was elected "
            "leader, since the leader before is stopping. Leader epoch 6, ISR [2, 3].",
        ]
        request = e.commands_received((ControlledShutdown(3, -1),), reply_to="token")
        world.process(controller, request)
        assert story(world, "t-1", controller)[-1] == (
            f"    {LATER}  Broker 3 is stopping (controlled shutdown). Broker 3 was taken out of "
            "the ISR. Leader epoch 6, ISR [2]."
        )
        world.stop_broker(1)
        world.deliver(controller)
        (absence, _) = story(world, "t-0", controller)[2:4]
        assert absence == (
            f"  Broker 1 is not in the ISR since {LATER}: it was stopping. It is down since "
            f"{LATER}."
        )

    def test_a_broker_that_is_back_and_not_in_sync_yet(self) -> None:
        world, controller = cluster()
        world.stop_broker(3)
        world.deliver(controller)
        world.driver.now_ms += 1_000
        world.start_broker(3)
        world.deliver(controller)
        later = "1970-01-12T13:47:41.123Z"
        assert (
            f"  Broker 3 is not in the ISR since {LATER}: it failed. It is live since {later}, and "
            "has not caught up." in story(world, "t-1", controller)
        )

    def test_a_bounce(self) -> None:
        world, controller = cluster()
        world.bounce_broker(1)
        world.deliver(controller)
        epoch = active_context(controller).cluster.brokers[1].epoch
        told = story(world, "t-0", controller)
        assert told[-1] == (
            f"    {LATER}  Broker 1 was restarted (new broker epoch {epoch}). Broker 2 was elected "
            "leader from the ISR. Leader epoch 6, ISR [2, 3]."
        )
        assert f"  Broker 1 is not in the ISR since {LATER}: it was restarted." in told[2]

    def test_a_follower_that_fell_behind_before_the_leader_failed(self) -> None:
        world, controller = cluster()
        world.set_state(T0, 1, (1, 2), leader_epoch=5)
        world.stop_broker(1)
        world.deliver(controller)
        told = story(world, "t-0", controller)
        assert told[2] == (
            f"  Broker 1 is not in the ISR since {LATER}: it failed. It is down since {LATER}."
        )
        assert told[3].startswith(
            f"  Broker 3 is not in the ISR since {LATER}: the leader took it out, because it "
            "stopped fetching, or fell behind. It is live"
        )
        assert told[-2] == (
            f"    {LATER}  By then the leader, broker 1, had taken broker 3 out of the ISR: it "
            "stopped fetching, or fell behind. Leader epoch 5, ISR [1, 2]."
        )
        assert f"{LATER}  Broker 1 failed: ZooKeeper session" in told[-1]

    def test_an_offline_partition_and_what_would_help(self) -> None:
        world, controller = cluster()
        configure(world, min_insync_replicas="2")
        world.stop_broker(3)
        world.deliver(controller)
        assert (
            "  The ISR has 1 of the 2 replicas of min.insync.replicas: producers with acks=all are "
            "refused." in story(world, "t-1", controller)
        )
        world.stop_broker(2)
        world.deliver(controller)
        world.start_broker(3)
        world.deliver(controller)
        told = story(world, "t-1", controller)
        assert told[1:4] == [
            "t-1: offline, nobody leads; leader epoch 7, ISR [2], replicas [2, 3].",
            "  It comes online when broker 2 returns: only broker 2 has every acknowledged record.",
            "  An unclean election would make broker 3 the leader, and what only the ISR has would "
            "be lost: unclean.leader.election.enable=true on the topic.",
        ]
        assert told[-1].endswith(
            "The ISR keeps its last member, broker 2. The partition lost its leader. Leader epoch "
            "7, ISR [2]."
        )
        assert exit_status(report_on(world, "t", controller)) is ExitStatus.OFFLINE_PARTITIONS

    def test_an_unclean_election(self) -> None:
        world, controller = cluster()
        world.set_state(T1, 2, (2,), leader_epoch=5)
        configure(world, **{UNCLEAN.replace(".", "_"): "true"})
        world.deliver(controller)
        world.stop_broker(2)
        world.deliver(controller)
        told = story(world, "t-1", controller)
        assert told[-1].endswith(
            "ended. Broker 3 was elected leader from outside the ISR [2] (unclean election): "
            "acknowledged records may be lost. Leader epoch 6, ISR [3]."
        )
        assert f"since {LATER}: an unclean election left it out." in told[2]

    def test_a_failed_log_directory(self) -> None:
        world, controller = cluster()
        for replica in (3, 2):
            answer = LeaderAndIsrResponse(replica, 0, {T1: KAFKA_STORAGE_ERROR}, {T1: False})
            world.process(controller, e.LeaderAndIsrResponseReceived((answer,)))
        told = story(world, "t-1", controller)
        assert told[1:3] == [
            "t-1: offline, nobody leads; leader epoch 7, ISR [2], replicas [2, 3].",
            "  Its replica on broker 2 is on a failed log directory: it comes online when the "
            "directory is repaired and the broker restarted.",
        ]
        assert (
            f"since {LATER}: it lost the log directory. It is live, and its replica is on a failed "
            "log directory." in told[3]
        )

    def test_a_failed_log_directory_is_not_taken_for_a_start_of_the_broker(self) -> None:
        world, controller = cluster()
        answer = LeaderAndIsrResponse(3, 0, {T1: KAFKA_STORAGE_ERROR}, {T1: False})
        world.process(controller, e.LeaderAndIsrResponseReceived((answer,)))
        world.set_state(T0, 1, (1, 2), leader_epoch=5)
        told = story(world, "t-0", controller)
        assert any(line.endswith(". It is live, and has not caught up.") for line in told)

    def test_a_replica_that_is_being_added_is_not_missing_since_the_term_began(self) -> None:
        world, controller = cluster()
        world.start_broker(4)
        world.deliver(controller)
        wanted = [{"topic": "t", "partition": 0, "replicas": [2, 3, 4]}]
        world.put(paths.REASSIGN_PARTITIONS, json.dumps({"partitions": wanted}).encode())
        world.deliver(controller)
        told = story(world, "t-0", controller)
        assert told[1:4] == [
            "t-0: broker 1 leads; leader epoch 6, ISR [1, 2, 3], replicas [2, 3, 4, 1].",
            "  Broker 4 is being added and not in the ISR yet. It is live since "
            f"{LATER}, and has not caught up.",
            "  A reassignment is in progress: it adds broker 4 and removes broker 1.",
        ]
        assert told[-1] == (
            f"    {LATER}  The partition is being reassigned. Regent raised the leader epoch; "
            "broker 1 leads. Leader epoch 6, ISR [1, 2, 3]."
        )

    def test_a_topic_that_was_created_in_this_term(self) -> None:
        world, controller = cluster()
        world.create_topic("u", {0: (2, 1)})
        world.deliver(controller)
        assert story(world, "u-0", controller)[-1] == (
            f"    {LATER}  The topic was created. Broker 2 became its first leader. Leader epoch "
            "0, ISR [2, 1]."
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

    def test_an_offline_partition_that_the_next_election_helps(self) -> None:
        world, controller = cluster()
        world.stop_broker(3)
        world.deliver(controller)
        world.stop_broker(2)
        world.deliver(controller)
        world.start_broker(2)  # and the controller has not observed it yet
        assert "  Broker 2 is live and in the ISR: the next election gives it a leader." in story(
            world, "t-1", controller
        )

    def test_a_change_that_regent_has_not_processed_yet(self) -> None:
        world, controller = cluster()
        world.stop_broker(1)
        world.deliver(controller)
        world.set_state(T0, 2, (2,), leader_epoch=6, controller_epoch=1)
        told = story(world, "t-0", controller)
        assert told[-1] == "    ZooKeeper has a later change, which Regent has yet to process."


class TestWithoutARegent:
    def test_the_state_is_told_and_who_could_not_be_asked(self) -> None:
        world, _ = cluster()
        report = report_on(world, "t-0")
        assert list(tell(report)) == [
            "No trail of changes: no Regent answers at http://regent (see --url). The controller "
            "is the Regent with the id 1000000001.",
            "",
            "t-0: broker 1 leads; leader epoch 5, ISR [1, 2, 3], replicas [1, 2, 3].",
            "  ZooKeeper: last changed at 1970-01-01T00:00:02.000Z (the last controller to change "
            "it had epoch 0), created at 1970-01-01T00:00:01.000Z.",
        ]
        assert exit_status(report) is ExitStatus.NO_TRAIL

    def test_without_a_controller_nothing_is_going_to_change(self) -> None:
        world, _ = cluster()
        world.delete(paths.CONTROLLER)
        world.stop_broker(1)
        report = report_on(world, "t-0")
        assert exit_status(report) is ExitStatus.NO_CONTROLLER
        told = list(tell(report))
        assert told[0] == "There is no controller: nothing changes until there is one."
        assert "t-0: offline, its leader, broker 1, is down; " in told[3]

    def test_an_unknown_topic(self) -> None:
        world, _ = cluster()
        for text in ("u", "u-0", "t-7", "..", "a/b"):
            report = report_on(world, text)
            assert exit_status(report) is ExitStatus.UNKNOWN_TOPIC, text
            assert next(tell(report)) == f"There is no topic or partition {text!r} in ZooKeeper."

    def test_a_partition_that_cannot_be_read(self) -> None:
        world, _ = cluster()
        world.put(paths.partition_state(T0), b"{")
        report = report_on(world, "t-0")
        told = "\n".join(tell(report))
        assert f"Unreadable: {paths.partition_state(T0)}" in told
        assert "t-0: its state in ZooKeeper cannot be read" in told
        assert "Correct the znode" in told
        assert exit_status(report) is ExitStatus.OFFLINE_PARTITIONS

    def test_a_topic_that_cannot_be_read(self) -> None:
        world, _ = cluster()
        world.put(paths.topic("t"), b"{")
        for text in ("t", "t-0"):
            told = "\n".join(story(world, text))
            assert f"Unreadable: {paths.topic('t')}" in told
            assert "all in sync" not in told
            assert exit_status(report_on(world, text)) is ExitStatus.UNREADABLE_ZNODES

    def test_a_partition_that_never_had_a_leader(self) -> None:
        world, _ = cluster()
        world.create_topic("u", {0: (7, 8)})
        assert story(world, "u-0")[-2:] == [
            "u-0: it never had a leader; replicas [7, 8].",
            "  It gets a leader when broker 7 or 8 starts.",
        ]


class TestTheTarget:
    @pytest.mark.parametrize(
        ("text", "topic", "partition"),
        [
            ("t", "t", None),
            ("t-1", "t", 1),
            ("logs-2024", "logs-2024", None),
            ("logs-2024-0", "logs-2024", 0),
            ("t-", "t-", None),
            ("t-x", "t-x", None),
            ("unknown-3", "unknown-3", None),
        ],
    )
    def test_a_number_at_the_end_is_a_partition_if_there_is_no_such_topic(
        self, text: str, topic: str, partition: int | None
    ) -> None:
        world, _ = cluster()
        world.create_topic("logs-2024", {0: (1,)})
        reader = ClusterReader(Reads(world.zookeeper), "")
        assert asyncio.run(resolve(reader, text))[:2] == (topic, partition)

    def test_of_two_readings_the_topic_is_taken_and_the_other_named(self) -> None:
        world, _ = cluster()
        world.create_topic("t-1", {0: (1,)})
        told = story(world, "t-1")
        assert told[0] == (
            "Topic 't-1' is meant, not partition 1 of topic 't': for that one say t --partition 1."
        )
        assert "t-1: " in "\n".join(story(world, "t", partition=1))

    def test_what_is_gone_may_have_been_either(self) -> None:
        world, _ = cluster()
        reader = ClusterReader(Reads(world.zookeeper), "")
        target = asyncio.run(resolve(reader, "gone-3"))
        assert target.alternative == Target("gone", 3)


class TestManyPartitions:
    def test_those_with_problems_come_first_then_those_that_changed(self) -> None:
        world = World()
        world.start_broker(1, 2)
        assignments: dict[int, Any] = dict.fromkeys(range(200), (1, 2))
        world.create_topic("t", assignments | {150: (3,), 160: (1, 3)})
        controller = world.active_controller()
        world.create_topic("t", assignments | {150: (3,), 160: (1, 3), 200: (2, 1)})
        world.deliver(controller)
        report = report_on(world, "t", controller)
        shown = [p["partition"] for p in report["topic"]["partitions"]]
        assert shown[:4] == [150, 160, 0, 1] or shown[:3] == [150, 160, 200]
        assert len(shown) == 20
        assert list(tell(report))[-1] == "181 partitions more: ask for one with --partition."

    def test_the_answer_of_a_regent_is_bounded(self) -> None:
        world = World()
        world.start_broker(1)
        world.create_topic("t", dict.fromkeys(range(1000), (1,)))
        controller = world.active_controller()
        report = state_change_report(active_context(controller), "t", None)
        assert report is not None
        assert (len(report["partitions"]), report["omitted"]) == (50, 950)
        one = state_change_report(active_context(controller), "t", 777)
        assert one is not None
        assert [p["partition"] for p in one["partitions"]] == [777]
        assert state_change_report(active_context(controller), "t", 1_000) is None


class TestSentences:
    @pytest.mark.parametrize("kind", CauseKind)
    def test_there_is_one_for_each_kind_of_cause(self, kind: CauseKind) -> None:
        broker = {"id": 3, "epoch": 77, "sessionId": "0x1"}
        about_brokers = kind in (
            CauseKind.BROKER_FAILED, CauseKind.BROKER_STARTED,
            CauseKind.BROKER_BOUNCED, CauseKind.LOG_DIR_FAILED, CauseKind.REQUEST_REFUSED,
            CauseKind.CONTROLLED_SHUTDOWN, CauseKind.SHUTDOWN_GIVEN_UP,
        )  # fmt: skip
        cause = {"kind": kind, "event": "SomeEvent", "timeMs": 0, "brokers": [broker]}
        sentence = cause_sentence(cause, {1, 3})
        assert sentence.endswith(".")
        assert ("Broker 3" in sentence) == about_brokers
        assert ("SomeEvent" in sentence) == (kind is CauseKind.OTHER)

    @pytest.mark.parametrize("kind", ChangeKind)
    def test_there_is_one_for_each_kind_of_change(self, kind: ChangeKind) -> None:
        before = {"leader": 1, "leaderEpoch": 4, "isr": [1, 2, 3], "controllerEpoch": 1}
        after = {"leader": 2, "leaderEpoch": 5, "isr": [2, 3], "controllerEpoch": 2}
        cause = {"kind": CauseKind.OTHER, "event": "E", "timeMs": 0, "brokers": []}
        sentences = change_sentences(before, {"kind": kind, "cause": cause, "after": after})
        assert sentences.endswith(". Leader epoch 5, ISR [2, 3].")

    def test_of_several_brokers_those_of_the_partition_are_named(self) -> None:
        lives = [{"id": b, "epoch": b, "sessionId": None} for b in (1, 2, 3)]
        cause = {"kind": CauseKind.BROKER_FAILED, "event": "E", "timeMs": 0, "brokers": lives}
        assert cause_sentence(cause, {2, 5}) == "Broker 2 failed."
        assert cause_sentence(cause, {1, 2, 3}) == "Brokers 1, 2 and 3 failed."

    def test_a_deleted_topic(self) -> None:
        cause = {"kind": CauseKind.TOPIC_DELETION, "event": "E", "timeMs": LATER_MS, "brokers": []}
        assert removed_sentence("t", cause) == (
            f"Topic 't' was deleted; its last replica was gone at {LATER}."
        )


def active_context(controller: KafkaController) -> Any:
    assert controller.active is not None
    return controller.active.context

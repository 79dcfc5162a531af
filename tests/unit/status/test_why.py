"""Whom and what `regent why` asks, and how it says what it has found."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from regent.controller.state.causes import CauseKind, ChangeKind
from regent.runtime.state_change_report import Reach, state_change_report
from regent.status.reader import ClusterReader
from regent.status.sentences import cause_sentence, change_sentences, removed_sentence
from regent.status.topic import Target, resolve
from regent.status.why import ExitStatus, exit_status, tell
from regent.zk_data import paths
from tests.support.present import present
from tests.unit.controller.world import World
from tests.unit.status.telling import (
    LATER,
    LATER_MS,
    T0,
    Reads,
    active_context,
    cluster,
    report_on,
    story,
)


class TestOutOfReach:
    def test_who_has_not_been_told_is_named_and_why_not(self) -> None:
        world, controller = cluster()
        reach = Reach({1: frozenset([T0]), 2: frozenset([T0])}, {1: "A://h:1: OSError: no"})
        told = list(tell(report_on(world, "t-0", controller, reach=reach)))
        assert (
            "  Broker 1 has not been informed that it is to lead it, as Regent does not reach it "
            "at A://h:1: OSError: no. Until then it does what it knew before, if anything."
        ) in told
        assert any(
            line.startswith("  Broker 2 has not been informed that it is to follow it, ")
            for line in told
        )

    def test_nobody_is_named_whom_a_regent_reaches(self) -> None:
        world, controller = cluster()
        assert "not been informed" not in "".join(tell(report_on(world, "t-0", controller)))


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

    def test_what_others_wrote_gives_the_terminal_no_commands(self) -> None:
        world, _ = cluster()
        report = report_on(world, "t-0") | {"regentProblem": "busy\x1b[2J\r\ud800"}
        told = "\n".join(tell(report))
        assert "busy\\x1b[2J\\r\\ud800 (see --url)" in told

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
        report = present(state_change_report(active_context(controller), "t", None))
        assert (len(report["partitions"]), report["omitted"]) == (50, 950)
        one = present(state_change_report(active_context(controller), "t", 777))
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
            CauseKind.LEADER_OF_FORMER_TOPIC,
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

"""`regent why` tells true stories of what happens to real brokers."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest

from sandbox.ports import LOOPBACK
from sandbox.regent_process import RegentProcess
from tests.integration.controller.test_broker_failure import UNCLEAN
from tests.support.cluster import Cluster, regent
from tests.support.command_line import run_regent
from tests.support.reassigning import (
    create_topic,
    request_reassignment,
    under_way,
    wait_until_moved,
)
from tests.support.znodes import forget_follower, state_path

pytestmark = [pytest.mark.integration, pytest.mark.slow]

PAUSE_OUTLIVED_MS = 60_000
"""A session that outlives a pause in which a broker is restarted."""


@pytest.fixture(scope="module", autouse=True)
def topics(cluster: Cluster) -> None:
    for name, replicas in (
        ("crashed", "3:1:2"),
        ("bounced", "2:1"),
        ("unclean-0", "1:2"),
        ("calm", "1:2:3"),
    ):
        cluster.tools.topics("--create", f"--topic={name}", f"--replica-assignment={replicas}")
    cluster.wait_in_sync()


def why(cluster: Cluster, process: RegentProcess | None, target: str, exit_code: int = 0) -> str:
    port = 1 if process is None else process.port
    outcome = run_regent(
        "why", target, "--zookeeper", cluster.kafka.zookeeper, "--url", f"http://{LOOPBACK}:{port}"
    )
    assert outcome.exit_code == exit_code, outcome
    assert not outcome.stderr
    return outcome.stdout


def changes(process: RegentProcess, topic: str) -> list[dict[str, Any]]:
    """The changes of partition 0 that the Regent keeps."""
    body = process.get(f"/why?topic={topic}&partition=0")
    return [] if body is None else list(json.loads(body)["partitions"][0]["changes"])


def session_of(cluster: Cluster, broker_id: int) -> str:
    found = cluster.znodes.get(f"/brokers/ids/{broker_id}")
    assert found is not None
    return f"0x{found[1].ephemeralOwner:x}"


def test_without_a_regent_the_state_is_told_from_zookeeper(cluster: Cluster) -> None:
    told = why(cluster, None, "calm", exit_code=8)
    assert "Topic calm: 1 partition, all in sync." in told
    assert "No trail of changes: no Regent answers at " in told
    assert "'s own, which keeps none." in told
    assert "calm-0: broker 1 leads; leader epoch 0, ISR [1, 2, 3], replicas [1, 2, 3]." in told
    assert "ZooKeeper: last changed at 20" in told
    assert "There is no topic or partition 'calm-7'" in why(cluster, None, "calm-7", exit_code=7)


@pytest.fixture(scope="module")
def process(cluster: Cluster, topics: None) -> Iterator[RegentProcess]:
    with regent(cluster, zookeeper_session_timeout_ms=PAUSE_OUTLIVED_MS) as started:
        started.wait_until_active()
        yield started


def test_what_was_before_this_term_is_known_to_zookeeper(
    cluster: Cluster, process: RegentProcess
) -> None:
    told = why(cluster, process, "calm-0")
    epoch = cluster.znodes.controller_epoch()
    assert f"It has not changed since controller epoch {epoch} began at 20" in told
    _, stat = cluster.znodes.get(state_path("calm")) or (b"", None)
    assert stat is not None
    state = cluster.znodes.state("calm")
    moment = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(stat.mtime / 1000))
    assert f"ZooKeeper: last changed at {moment}" in told
    assert f"had epoch {state['controller_epoch']})" in told


def test_the_story_of_a_crash(cluster: Cluster, process: RegentProcess) -> None:
    session = session_of(cluster, 3)
    before = cluster.znodes.state("crashed")
    began_ms = time.time() * 1000
    cluster.kill_broker(3)
    after = cluster.wait_for_leader("crashed", 1)
    cluster.wait(lambda: changes(process, "crashed"), "the change to be told of")
    told = why(cluster, process, "crashed-0")
    assert "crashed-0: broker 1 leads; " in told
    assert f"ISR {after['isr']}, replicas [3, 1, 2]" in told
    assert "Broker 3 is not in the ISR since " in told
    assert ": it failed. It is down since " in told
    assert f"Before: broker 3 led; leader epoch {before['leader_epoch']}, " in told
    assert (
        f"Broker 3 failed: ZooKeeper session {session} ended. Broker 1 was elected leader from the "
        f"ISR. Leader epoch {after['leader_epoch']}, ISR {after['isr']}." in told
    )
    (change,) = changes(process, "crashed")
    assert began_ms < change["cause"]["timeMs"] < time.time() * 1000
    follower = why(cluster, process, "calm-0")
    assert f"session {session} ended. Broker 3 was taken out of the ISR." in follower

    cluster.broker(3).start()
    cluster.wait_in_sync("crashed", "calm")
    cluster.wait(
        lambda: len(changes(process, "crashed")) > 1, "the change of the ISR to be told of"
    )
    told = why(cluster, process, "crashed-0")
    assert "The leader, broker 1, took broker 3 into the ISR. Leader epoch " in told
    assert "not in the ISR" not in told


def test_the_story_of_a_bounce(cluster: Cluster, process: RegentProcess) -> None:
    """The broker returns before anybody has observed that it was away."""
    assert cluster.znodes.state("bounced")["leader"] == 2
    process.process.pause()
    cluster.kill_broker(2)
    cluster.broker(2).start()
    process.process.resume()
    cluster.wait_for_leader("bounced", 1)
    cluster.wait(lambda: changes(process, "bounced"), "the change to be told of")
    told = why(cluster, process, "bounced")
    _, stat = cluster.znodes.get("/brokers/ids/2") or (b"", None)
    assert stat is not None
    assert (
        f"Broker 2 was restarted (new broker epoch {stat.czxid}). Broker 1 was elected leader from "
        "the ISR." in told
    )
    cluster.wait_in_sync()


def test_the_story_of_an_unclean_election(cluster: Cluster, process: RegentProcess) -> None:
    forget_follower(cluster.znodes, "unclean-0", leader=1)
    cluster.kill_broker(1)
    cluster.wait_for_leader("unclean-0", -1)
    cluster.wait(lambda: len(changes(process, "unclean-0")) >= 2, "the changes to be told of")
    told = why(cluster, process, "unclean-0", exit_code=5)
    assert "unclean-0-0: offline, nobody leads; " in told
    assert "It comes online when broker 1 returns: only broker 1 has every acknowledged" in told
    assert "An unclean election would make broker 2 the leader" in told
    assert "The ISR keeps its last member, broker 1. The partition lost its leader." in told

    cluster.tools.run(
        "kafka-configs",
        f"--bootstrap-server={cluster.broker(2).bootstrap_servers}",
        "--alter",
        "--entity-type=topics",
        "--entity-name=unclean-0",
        f"--add-config={UNCLEAN}=true",
    )
    state = cluster.wait_for_leader("unclean-0", 2)
    cluster.wait(lambda: len(changes(process, "unclean-0")) >= 3, "the election to be told of")
    told = why(cluster, process, "unclean-0-0")
    assert (
        "unclean.leader.election.enable was set to true. Broker 2 was elected leader from outside "
        "the ISR [1] (unclean election): acknowledged records may be lost. Leader epoch "
        f"{state['leader_epoch']}, ISR [2]." in told
    )
    cluster.broker(1).start()
    cluster.wait_in_sync()


def test_the_story_of_a_reassignment(cluster: Cluster, process: RegentProcess) -> None:
    """Under way to a broker that is down, then completed; the former leader leaves."""
    create_topic(cluster, "moved", {0: [1, 2]})
    cluster.wait_for_leader("moved", 1)
    epoch = cluster.znodes.state("moved")["leader_epoch"]
    cluster.kill_broker(3)
    request_reassignment(cluster, {("moved", 0): [2, 3]})
    cluster.wait(lambda: under_way(cluster, "moved"), "the move to begin")
    cluster.wait(lambda: len(changes(process, "moved")) >= 2, "the new epoch to be told of")
    told = why(cluster, process, "moved-0")
    assert "moved-0: broker 1 leads; " in told
    assert "A reassignment is in progress: it adds broker 3 and removes broker 1." in told
    assert "Broker 3 is being added and not in the ISR yet. It is down since " in told

    cluster.broker(3).start()
    wait_until_moved(cluster, {("moved", 0): [2, 3]})
    state = cluster.znodes.state("moved")
    cluster.wait(
        lambda: changes(process, "moved"),
        "the end to be told of",
        until=lambda found: found[-1]["after"]["leaderEpoch"] == state["leader_epoch"],
    )
    told = why(cluster, process, "moved-0")
    assert f"moved-0: broker 2 leads; leader epoch {state['leader_epoch']}, " in told
    assert "replicas [2, 3]." in told
    assert "The partition is being reassigned. Broker 2 was elected leader from the target" in told
    assert "is being added" not in told
    assert state["leader_epoch"] > epoch


def test_the_story_of_a_preferred_election(cluster: Cluster, process: RegentProcess) -> None:
    create_topic(cluster, "favoured", {0: [1, 2]})
    cluster.kill_broker(1)
    cluster.wait_for_leader("favoured", 2)
    cluster.broker(1).start()
    cluster.wait_in_sync("favoured")
    request = {"version": 1, "partitions": [{"topic": "favoured", "partition": 0}]}
    cluster.znodes.client.create("/admin/preferred_replica_election", json.dumps(request).encode())
    state = cluster.wait_for_leader("favoured", 1)
    cluster.wait(
        lambda: changes(process, "favoured"),
        "the election to be told of",
        until=lambda found: found[-1]["after"]["leader"] == 1,
    )
    told = why(cluster, process, "favoured-0")
    assert (
        "An election of leaders was requested. Broker 1, the preferred leader, was elected leader. "
        f"Leader epoch {state['leader_epoch']}, ISR {state['isr']}." in told
    )


def test_the_story_of_a_topic_from_its_creation_to_its_deletion(
    cluster: Cluster, process: RegentProcess
) -> None:
    create = cluster.znodes.client.create
    create("/brokers/topics/brief", b'{"version":1,"partitions":{"0":[2,3]}}')
    cluster.wait(lambda: changes(process, "brief"), "the creation to be told of")
    assert (
        "The topic was created. Broker 2 became its first leader. Leader epoch 0, ISR [2, 3]."
        in why(cluster, process, "brief-0")
    )
    create("/admin/delete_topics/brief")
    cluster.wait(lambda: "brief" not in cluster.znodes.topics(), "the topic to be deleted")
    cluster.wait(
        lambda: json.loads(process.get("/why?topic=brief") or "{}").get("removed"),
        "the deletion to be told of",
    )
    told = why(cluster, process, "brief-0", exit_code=7)
    assert "There is no topic or partition 'brief-0' in ZooKeeper." in told
    assert "Topic 'brief' was deleted; its last replica was gone at 20" in told


def test_a_regent_that_is_not_the_controller_says_so(
    cluster: Cluster, process: RegentProcess
) -> None:
    with regent(cluster, name="standby") as standby:
        told = why(cluster, standby, "calm", exit_code=8)
    assert f"No trail of changes: the Regent at http://{LOOPBACK}:{standby.port} answers: " in told
    assert "this Regent is not the controller" in told
    assert "The controller is the Regent with the id 10000000" in told

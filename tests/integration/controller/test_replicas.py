"""Two Regents on one cluster: one is active, the other takes over, and a zombie does no harm."""

from __future__ import annotations

import json
import re
import struct
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from sandbox.regent_process import RegentProcess
from tests.support.cluster import Cluster, controller_id_of, regent
from tests.support.figures import Figure
from tests.support.resources import Resources, topic
from tests.support.znodes import Znodes, difference

pytestmark = pytest.mark.integration

ELECTION = "/regent/election"
RIVAL_ID = 1_900_000_000
STOP_REPLICA = (5, 1)  # key and version


class Pair:
    """Two Regents that serve the same namespace as different users of the API server."""

    def __init__(
        self, cluster: Cluster, members: dict[str, RegentProcess], audit_log: Path, namespace: str
    ) -> None:
        self._cluster = cluster
        self._members = members
        self._audit_log = audit_log
        self._namespace = namespace

    def user(self, process: RegentProcess) -> str:
        return next(user for user, member in self._members.items() if member is process)

    def roles(self) -> tuple[RegentProcess, RegentProcess]:
        """Wait until one is active and the other waits in the queue; both in this order."""

        def look() -> list[RegentProcess] | None:
            members = list(self._members.values())
            states = {id(member): member.status() for member in members}
            if None in states.values() or len(self._cluster.znodes.children(ELECTION)) != 2:
                return None
            members.sort(key=lambda m: not (states[id(m)] or {})["isActive"])
            roles = [(states[id(m)] or {})["isActive"] for m in members]
            eligible = [(states[id(m)] or {})["isEligible"] for m in members]
            return members if roles == eligible == [True, False] else None

        active, standby = self._cluster.wait(
            look,
            "one active Regent and one on standby",
            logs=[member.log_path for member in self._members.values()],
        )
        return active, standby

    def audit_position(self) -> int:
        return self._audit_log.stat().st_size

    def writers(self, *, since: int) -> set[str]:
        """Who of the two has changed KafkaTopics of the namespace: attempts that the API server
        refused, because the object is newer than the writer knows, have changed nothing."""
        with self._audit_log.open() as log:
            log.seek(since)
            entries = [json.loads(line) for line in log if line.endswith("\n")]
        return {
            entry["user"]["username"]
            for entry in entries
            if entry["objectRef"].get("namespace") == self._namespace
            and entry["verb"] not in ("get", "list", "watch")
            and entry["responseStatus"]["code"] < 300
            and entry["user"]["username"] in self._members
        }


@pytest.fixture(scope="module")
def pair(cluster: Cluster, resources: Resources, audit_log: Path) -> Iterator[Pair]:
    with ExitStack() as stack:
        members = {
            user: stack.enter_context(
                regent(
                    cluster,
                    name=user,
                    kubeconfig=resources.api.kubeconfig_for(user),
                    namespace=resources.namespace,
                )
            )
            for user in ("regent-a", "regent-b")
        }
        yield Pair(cluster, members, audit_log, resources.namespace)


def test_exactly_one_of_two_regents_is_active_and_only_it_writes_statuses(
    cluster: Cluster, resources: Resources, pair: Pair
) -> None:
    active, standby = pair.roles()
    since = pair.audit_position()
    assert cluster.wait_for_announced_controller() == controller_id_of(active)
    cluster.wait(
        lambda: [
            float(line.split()[1])
            for process in (active, standby)
            for line in process.metrics().splitlines()
            if line.startswith("kafka_controller_kafkacontroller_activecontrollercount ")
        ],
        "one active controller to be counted",
        until=lambda counts: counts == [1.0, 0.0],
    )
    assert (active.get("/readyz"), standby.get("/readyz")) == ("ok\n", "ok\n")

    resources.apply(topic("first"))
    resources.wait_ready("first")
    assert pair.writers(since=since) == {pair.user(active)}


def test_the_standby_takes_over_from_one_that_is_stopped(
    cluster: Cluster, resources: Resources, pair: Pair, figure: Figure
) -> None:
    active, standby = pair.roles()
    since, epoch = pair.audit_position(), cluster.znodes.controller_epoch()
    began = time.monotonic()
    active.process.terminate()
    standby.wait_until_active()
    figure("active after SIGTERM of the other", f"{(time.monotonic() - began) * 1000:.0f} ms")
    active.stop()
    assert active.process.exit_code == 0
    # at most one broker can have been the controller in between
    assert cluster.znodes.controller_epoch() - epoch in (1, 2)

    resources.apply(topic("second", partitions=1))
    resources.wait_ready("second")
    assert pair.user(standby) in pair.writers(since=since)
    active.start()
    assert pair.roles() == (standby, active)


def test_the_standby_takes_over_from_one_that_is_killed(
    cluster: Cluster, resources: Resources, pair: Pair, figure: Figure
) -> None:
    active, standby = pair.roles()
    since = pair.audit_position()
    gone = cluster.znodes.watch("/controller")
    cluster.kill_regent(active)
    standby.wait_until_active()
    now = time.monotonic()
    ended = gone.wait("the end of the session")
    figure("the other active after another", f"{(now - ended) * 1000:.0f} ms")

    resources.apply(topic("third", partitions=1))
    resources.wait_ready("third")
    assert pair.writers(since=since) == {pair.user(standby)}
    active.start()
    assert pair.roles() == (standby, active)


def test_one_that_wakes_up_after_its_session_writes_nothing_and_is_not_obeyed(
    cluster: Cluster, resources: Resources, pair: Pair, figure: Figure
) -> None:
    zombie, successor = pair.roles()
    begun = cluster.znodes.watch("/brokers/topics/halfway-0")
    resources.apply(*(topic(f"halfway-{n}", partitions=10) for n in range(5)))
    begun.wait("the first topic to be created")
    session_id = cluster.controller_session()
    zombie.pause()  # in the middle of the work
    cluster.end_session(session_id)
    cluster.wait(
        lambda: cluster.znodes.controller(),
        "the other Regent to be elected",
        until=lambda controller_id: controller_id == controller_id_of(successor),
    )
    resources.apply(topic("asleep"))  # news for the one that sleeps
    resources.wait_ready("asleep", *(f"halfway-{n}" for n in range(5)))
    cluster.wait_for_consistency()
    epoch = cluster.znodes.controller_epoch()
    before, since = cluster.znodes.dump(), pair.audit_position()
    log_sizes = {broker: broker.log_path.stat().st_size for broker in cluster.running}
    obeyed: set[int] = set()

    def woken() -> bool:
        obeyed.update(cluster.metadata(b).controller_id for b in cluster.broker_ids)
        return len(cluster.znodes.children(ELECTION)) == 2

    zombie.resume()
    cluster.wait(woken, "it to queue up as standby", logs=[zombie.log_path], interval_s=0.01)
    assert pair.roles() == (successor, zombie)
    obeyed.update(cluster.metadata(b).controller_id for b in cluster.broker_ids)

    changed = difference(before, cluster.znodes.dump())
    assert all(path.startswith(ELECTION) for path in changed), changed
    assert cluster.znodes.controller_epoch() == epoch
    assert {state["controller_epoch"] for state in cluster.znodes.states().values()} <= set(
        range(epoch + 1)
    )
    assert obeyed == {controller_id_of(successor)}
    heard = {
        (broker.log_path, request): lines
        for broker, size in log_sizes.items()
        for request, lines in requests_of(zombie, broker.log_path, since=size).items()
    }
    figure("requests of the zombie that brokers mention", len(heard))
    # a broker may also log that it handles such a request, and that it has finished
    assert all(any(" old" in line for line in lines) for lines in heard.values()), heard
    assert pair.user(zombie) not in pair.writers(since=since)


def test_a_write_that_comes_after_a_rival_has_taken_over_is_refused(
    cluster: Cluster, pair: Pair, figure: Figure
) -> None:
    """The rival's transaction also makes work, which Regent sees before it sees the rival:
    so it does try to write as the controller that it is no more."""
    active, standby = pair.roles()
    znodes = cluster.znodes
    epoch = znodes.controller_epoch()
    holder = json.dumps({"version": 1, "brokerid": RIVAL_ID, "timestamp": "0"}).encode()
    with Znodes(cluster.kafka.zookeeper) as rival:
        began = time.monotonic()
        transaction = rival.client.transaction()
        transaction.create("/brokers/topics/trap", b'{"version":2,"partitions":{"0":[1,2,3]}}')
        transaction.set_data("/controller_epoch", str(epoch + 1).encode(), version=epoch)
        transaction.delete("/controller")
        transaction.create("/controller", holder, ephemeral=True)
        failed = [result for result in transaction.commit() if isinstance(result, Exception)]
        assert not failed
        cluster.wait(
            znodes.controller,
            "Regent to take /controller back",
            until=lambda controller_id: controller_id == controller_id_of(active),
            logs=[active.log_path],
        )
        figure("the controller again after", f"{time.monotonic() - began:.2f} s")
    assert znodes.controller_epoch() == epoch + 2
    assert cluster.wait_for_leader("trap", 1)["controller_epoch"] == epoch + 2
    # by a refused write, not by the watch
    assert "reason" in resignations(active)[-1]
    assert pair.roles() == (active, standby)
    cluster.wait_for_consistency()


def test_a_regent_whose_requests_are_refused_resigns_and_comes_back_with_a_higher_epoch(
    cluster: Cluster, resources: Resources, pair: Pair
) -> None:
    active, standby = pair.roles()
    epoch = cluster.znodes.controller_epoch()
    no_topics = 0
    answer = cluster.connections[2].ask(
        *STOP_REPLICA, struct.pack(">iiq?i", RIVAL_ID, epoch + 1, -1, False, no_topics)
    )
    assert answer == struct.pack(">hi", 0, no_topics)  # broker 2 obeys the rival from now on

    resources.apply(topic("refused"))
    resources.wait_ready("refused")
    assert resignations(active)[-1]["reason"] == "broker 2 obeys a newer controller"
    assert cluster.znodes.controller_epoch() == epoch + 1
    assert pair.roles() == (active, standby)
    cluster.wait_for_consistency()


def requests_of(process: RegentProcess, log_path: Path, *, since: int) -> dict[str, list[str]]:
    """What a broker has logged about a Regent's requests, by correlation id."""
    requests: dict[str, list[str]] = {}
    with log_path.open() as log:
        log.seek(since)
        for line in log:
            if re.search(rf"controller {controller_id_of(process)}\b", line):
                request = re.search(r"correlation ?id (\d+)", line, re.IGNORECASE)
                requests.setdefault(request[1] if request else line, []).append(line)
    return requests


def resignations(process: RegentProcess) -> list[dict[str, Any]]:
    """What a Regent has logged about resigning, and why."""
    return [entry for entry in process.log_entries() if entry["message"].endswith(", resigning")]

"""Nonsense in a znode: said with its path, skipped, and everything else goes on."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from sandbox.regent_process import RegentProcess
from tests.support.cluster import Cluster, controller_id_of
from tests.support.resources import Resources, topic
from tests.support.znodes import Znodes, difference, state_path

pytestmark = [pytest.mark.integration, pytest.mark.slow]

RIVAL_ID = 1_900_000_000
NONSENSE = b'{"version":'

REGISTRATION = "/brokers/ids/99"
STATE = state_path("unreadable")
CONFIG = "/config/topics/confused"

READ_AT_ONCE = {
    REGISTRATION: b"null",
    "/brokers/topics/nonsense": NONSENSE,
    "/brokers/topics/half-nonsense": b'{"version":2,"partitions":{"0":[1,2,3],"1":"two"}}',
    # no broker can create such a directory: it would take its disk for broken, and stop
    f"/brokers/topics/{300 * 'a'}": b'{"version":2,"partitions":{"0":[1,2,3]}}',
}
NOTIFICATIONS = {
    "/isr_change_notification/isr_change_": b"[]",
    "/log_dir_event_notification/log_dir_event_": b"\xff\xfe",
    "/config/changes/config_change_": b"",
}
"""Sequential nodes. Regent deletes the first two once it has read them, brokers the last."""

READ_WHEN_NEEDED = {"/feature": NONSENSE, CONFIG: NONSENSE, STATE: b"{}"}
CORRECTED = {
    "/brokers/topics/nonsense": b'{"version":2,"partitions":{"0":[1,2,3]}}',
    "/brokers/topics/half-nonsense": b'{"version":2,"partitions":{"0":[1,2,3],"1":[2,3,1]}}',
}


class Garden:
    """Nodes with nonsense in them, and how to get rid of it: brokers cannot cope with it."""

    def __init__(self, znodes: Znodes) -> None:
        self._znodes = znodes
        self._before: dict[str, bytes | None] = {}

    def plant(self, nodes: dict[str, bytes]) -> None:
        for path, content in nodes.items():
            found = self._znodes.get(path)
            self._before[path] = None if found is None else found[0]
            self._put(path, content)

    def correct(self, nodes: dict[str, bytes] | None = None) -> None:
        """Put back what was there, or what is given instead."""
        for path, content in {**self._before, **(nodes or {})}.items():
            if content is not None:
                self._put(path, content)
            elif self._znodes.get(path) is not None:
                self._znodes.client.delete(path, recursive=True)
        self._before.clear()

    def _put(self, path: str, content: bytes) -> None:
        if self._znodes.get(path) is None:
            self._znodes.client.create(path, content, makepath=True)
        else:
            self._znodes.client.set(path, content)


@pytest.fixture
def garden(cluster: Cluster, process: RegentProcess) -> Iterator[Garden]:
    made = Garden(cluster.znodes)
    yield made
    made.correct()  # before Regent ends, whatever has become of the test


class Log:
    """What Regent logs from now on."""

    def __init__(self, process: RegentProcess) -> None:
        self._process = process
        self._seen = len(process.log_entries())

    def problems(self) -> dict[str, str]:
        """Malformed paths with what was said of them, by an entry for one or for many."""
        found: dict[str, str] = {}
        for entry in self.entries():
            if entry["level"] not in ("WARNING", "ERROR"):
                continue
            if "path" in entry:
                found[entry["path"]] = f"{entry['message']}: {entry.get('reason')}"
            elif "znodes" in entry:
                for path, _, reason in (example.partition(": ") for example in entry["examples"]):
                    found[path] = f"{entry['message']}: {reason}"
        return found

    def entries(self) -> list[dict[str, Any]]:
        return self._process.log_entries()[self._seen :]


def test_malformed_znodes_are_named_and_skipped_while_running_and_at_a_failover(
    cluster: Cluster, resources: Resources, process: RegentProcess, garden: Garden
) -> None:
    znodes = cluster.znodes
    resources.apply(
        topic("unreadable", partitions=1),
        topic("confused", partitions=1, config={"retention.ms": 3_600_000}),
        topic("healthy", partitions=6),
    )
    resources.wait_ready("unreadable", "confused", "healthy")

    # while running
    log = Log(process)
    garden.plant(READ_AT_ONCE | READ_WHEN_NEEDED)
    notifications = [
        znodes.client.create(path, content, sequence=True)
        for path, content in NOTIFICATIONS.items()
    ]
    cluster.wait(
        lambda: log.problems().keys(),
        "all that is read at once to be named",
        until=lambda named: {*READ_AT_ONCE, *notifications} <= named,
    )
    resources.apply(topic("while-running"))
    resources.wait_ready("while-running")
    assert cluster.wait_for_leader("half-nonsense", 1)
    cluster.wait(
        lambda: [path for path in notifications[:2] if znodes.get(path)],
        "the first two notifications to be deleted",
        until=lambda left: not left,
    )

    # at a failover
    log = Log(process)
    depose(cluster, process)
    cluster.wait(
        lambda: log.problems().keys(),
        "all that is left to be named",
        until=lambda named: (READ_AT_ONCE | READ_WHEN_NEEDED).keys() <= named,
    )
    resources.apply(topic("after-failover"))
    resources.wait_ready("after-failover")
    confused = resources.wait_for_condition("confused", "Ready", "False", "InternalError")
    assert "/config/topics/confused is malformed" in confused["message"]

    # at the failure of a broker
    log = Log(process)
    cluster.kill_broker(3)
    cluster.wait(
        lambda: znodes.states("healthy", "while-running", "after-failover").values(),
        "the others to lead what the broker led",
        until=lambda states: all(s["leader"] in (1, 2) and 3 not in s["isr"] for s in states),
    )
    cluster.wait(
        lambda: log.problems().keys(),
        "what is read to be named, and nothing else",
        until=lambda named: named == {REGISTRATION, STATE},
    )

    # once everything is corrected
    garden.correct(CORRECTED)
    cluster.broker(3).start()
    log = Log(process)
    depose(cluster, process)
    cluster.wait_in_sync()
    resources.wait_ready("unreadable", "confused", "healthy")
    cluster.wait_for_consistency()
    assert not log.problems()


@pytest.mark.parametrize("content", [b"", b"[]", b'{"version":1}'], ids=["empty", "list", "no id"])
def test_a_controller_node_made_by_hand_is_named_and_taken_over(
    cluster: Cluster, resources: Resources, process: RegentProcess, content: bytes
) -> None:
    epoch = cluster.znodes.controller_epoch()
    log = Log(process)
    transaction = cluster.znodes.client.transaction()
    transaction.delete("/controller")
    transaction.create("/controller", content)  # persistent: nobody's session ends it
    transaction.commit()
    cluster.wait(
        cluster.znodes.controller_epoch, "Regent to be elected again", until=lambda e: e > epoch
    )
    assert cluster.wait_for_announced_controller() == controller_id_of(process)
    assert cluster.znodes.controller_epoch() == epoch + 1
    assert log.problems().keys() == {"/controller"}
    assert cluster.znodes.broker_ids() == cluster.broker_ids
    cluster.wait_for_consistency()


def test_without_a_readable_controller_epoch_nothing_is_written_until_it_is_mended(
    cluster: Cluster, resources: Resources, process: RegentProcess
) -> None:
    znodes = cluster.znodes
    epoch = znodes.controller_epoch()
    log = Log(process)
    znodes.client.set("/controller_epoch", b"many")
    before = znodes.dump()
    resources.apply(topic("later"))
    # it tries again and again, at growing intervals, and says why that fails
    failures = cluster.wait(
        lambda: [entry for entry in log.entries() if entry["message"].startswith("Event failed")],
        "three attempts",
        until=lambda found: len(found) >= 3,
    )
    assert all("/controller_epoch" in failure["error"] for failure in failures)
    assert not difference(before, znodes.dump())
    assert process.get("/healthz")
    assert not (process.status() or {})["isActive"]

    # any number that no broker has seen a higher one of
    znodes.client.set("/controller_epoch", str(epoch + 2).encode())
    assert process.wait_until_active()["controllerEpoch"] == epoch + 3
    resources.wait_ready("later")
    cluster.wait_for_announced_controller()
    cluster.wait_for_consistency()


def depose(cluster: Cluster, process: RegentProcess) -> None:
    """Another controller holds /controller for a moment: Regent resigns, and is elected again."""
    epoch = cluster.znodes.controller_epoch()
    registration = json.dumps({"version": 1, "brokerid": RIVAL_ID, "timestamp": "0"}).encode()
    with Znodes(cluster.kafka.zookeeper) as rival:
        transaction = rival.client.transaction()
        transaction.set_data("/controller_epoch", str(epoch + 1).encode(), version=epoch)
        transaction.delete("/controller")
        transaction.create("/controller", registration, ephemeral=True)
        assert not [result for result in transaction.commit() if isinstance(result, Exception)]
        cluster.wait(
            cluster.znodes.controller,
            "Regent to be elected again",
            until=lambda controller_id: controller_id == controller_id_of(process),
            logs=[process.log_path],
        )

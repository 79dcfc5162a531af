"""A Regent that was frozen in the middle of its work wakes up when another one has led for a while:
it writes nothing, and sends next to nothing, of which no broker obeys anything.

Who has written is read in ZooKeeper's own transaction log; the brokers are stubs that keep every
request. ``TRIES=100`` makes so many, in which the successor has led for 1 ms to 60 s (or
``LONGEST_S``); ``SEED`` repeats the moments.

A broker that the successor has not reached yet obeys whoever it knows. On a busy machine that is so
for some 50 ms. So it is not enough that brokers refuse what comes from a former controller: nothing
is sent, unless the process was frozen in the very moment of sending, between its last question and
the system call. One request in all tries of a run is allowed for that; the figures have it.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Iterable, Iterator

import pytest
from rich.console import Console

from benchmarks.arena import Arena, arena_of
from benchmarks.benchmark import Options
from benchmarks.cluster import Cluster
from benchmarks.isr_changes import IsrChanges
from benchmarks.replicas import Pair, Replica, pair_in
from benchmarks.stub.answers import read_header
from benchmarks.stub.exchanges import Exchange
from benchmarks.stub.requests import fence
from benchmarks.zookeeper import Create, Election
from regent.model.partition import ReplicaAssignment
from regent.zk_data import paths
from regent.zk_data.topics import TopicZNode, encode_topic
from sandbox import wait_until
from sandbox.waiting import DEADLINE_S
from tests.support.figures import Figure
from tests.support.soak import soak
from tests.support.transaction_log import changes

TRIES = int(os.environ.get("TRIES", "8"))

pytestmark = [
    soak("controller"),
    pytest.mark.integration,
    pytest.mark.slow,
    pytest.mark.timeout(max(900, 40 * TRIES)),
]

SEED = int(os.environ.get("SEED", "1"))
SHORTEST_S = 0.001
LONGEST_S = float(os.environ.get("LONGEST_S", "60" if TRIES >= 100 else "2"))
CHANGES_A_SECOND = 500
TOPICS = 10
OF_REPLICAS = ("/kafka/regent/election/", "/kafka/regent/election-presence/")
SENT_AT_MOST = 1
"""Requests in all tries of a run: those that were frozen in the very moment of sending."""
DEPOSED = "Not the controller any more after a pause: nothing is sent"


@pytest.fixture(scope="module")
def arena() -> Iterator[Arena]:
    options = Options(size=500, rounds=1, samples=1, timeout_s=DEADLINE_S, idle_timeout_s=0)
    with arena_of(options, Cluster(options.size), Console(quiet=True)) as arena:
        yield arena


def leads(chance: random.Random) -> list[float]:
    """For how long the successor has led, by try: the shortest, the longest, others between."""
    between = [
        SHORTEST_S * (LONGEST_S / SHORTEST_S) ** chance.random() for _ in range(max(TRIES - 2, 0))
    ]
    return [SHORTEST_S, LONGEST_S, *between][:TRIES]


class Try:
    """One replica is frozen in the middle of its work, and wakes up."""

    def __init__(self, arena: Arena, pair: Pair, name: str) -> None:
        self.arena = arena
        self.pair = pair
        self.name = name
        self.session_id = self._owner_of_controller()

    def _owner_of_controller(self) -> int:
        (node,) = self.arena.session.read([paths.CONTROLLER])
        assert node is not None
        return int(node.ephemeral_owner)

    def begin_work(self) -> None:
        """Topics to be given leaders."""
        replicas = {partition: ReplicaAssignment((1, 2, 3)) for partition in range(4)}
        self.arena.session.write_at_once(
            Create(paths.topic(f"{self.name}-{number}"), encode_topic(TopicZNode(None, replicas)))
            for number in range(TOPICS)
        )

    def freeze(self) -> Election:
        """Freeze the one that leads, until the other one is elected."""
        pair = self.pair
        frozen_at = time.monotonic_ns()
        pair.active.process.pause()
        return self.arena.session.await_election(
            pair.standby.controller_id,
            triggered_at=frozen_at,
            timeout_s=DEADLINE_S,
            instead_of=pair.active.controller_id,
        )

    def wake_up(self) -> int:
        """Let the frozen one go on until it has resigned. When that began, in monotonic ns."""
        woken_at = time.monotonic_ns()
        zombie = self.pair.active
        zombie.process.resume()
        wait_for(lambda: has_logged(zombie, "Controller resigned"), zombie, "it to resign")
        return woken_at

    def written_after(self, election: Election) -> list[str]:
        """Nodes that the frozen one has changed since, but for its places among the replicas."""
        last = f"/{self.name}-is-over"
        self.arena.session.write_at_once([Create(last, b"")])
        written = [
            change
            for change in changes(self.arena.zookeeper.state_path / "data")
            if not change.path.startswith(OF_REPLICAS)
        ]
        before = [change for change in written if change.zxid < election.zxid]
        after = [change for change in written if change.zxid > election.zxid]
        assert any(change.session_id == self.session_id for change in before)
        assert any(change.path.endswith(last) for change in after)
        return [change.path for change in after if change.session_id == self.session_id]


def sent(exchanges: Iterable[Exchange], *, by: int, since: int) -> list[str]:
    """Requests of a controller that came after a moment, and whether their brokers obeyed: they had
    been sent none with a higher epoch. Exchanges are in the order in which they were answered."""
    highest: dict[int, int] = {}
    found: list[str] = []
    for exchange in exchanges:
        controller_id, epoch, _ = fence(exchange.frame, read_header(exchange.frame))
        known = highest.setdefault(exchange.broker_id, epoch)
        highest[exchange.broker_id] = max(known, epoch)
        if controller_id == by and exchange.received_at > since:
            found.append(
                f"API {exchange.api_key} to broker {exchange.broker_id}, "
                f"{'obeyed' if epoch >= known else 'refused'}, of {len(exchange.frame)} bytes: "
                f"the first {(exchange.began_at - since) / 1e6:.3f} ms after it woke up, "
                f"the last {(exchange.received_at - since) / 1e6:.3f} ms"
            )
    return found


def has_logged(replica: Replica, message: str) -> bool:
    return any(line.message == message for line in replica.log())


def wait_for(condition: object, replica: Replica, describe: str) -> None:
    wait_until(
        condition,  # type: ignore[arg-type]
        describe=describe,
        watch=[replica.process],
        logs=[replica.process.log_path],
    )


def test_one_that_wakes_up_writes_nothing_sends_hardly_anything_and_is_not_obeyed(
    arena: Arena, figure: Figure
) -> None:
    chance = random.Random(SEED)
    written: dict[str, list[str]] = {}
    sent_by: dict[str, list[str]] = {}
    asked = 0
    with IsrChanges(arena.connect_string, arena.cluster) as writer, pair_in(arena) as pair:
        for number, lead_s in enumerate(leads(chance)):
            attempt = Try(arena, pair, f"try-{number}")
            what = f"try {number}, {lead_s:.3f} s"
            zombie, successor = pair.active, pair.standby
            arena.stubs.forget()
            writer.start(CHANGES_A_SECOND)
            attempt.begin_work()
            time.sleep(chance.uniform(0.0, 0.1))  # somewhere in the work
            election = attempt.freeze()
            time.sleep(lead_s)
            woken_at = attempt.wake_up()
            writer.stop()
            wait_for(
                lambda one=successor: has_logged(one, "Controller failover completed"),
                successor,
                "the failover",
            )
            arena.stubs.wait_until_quiet(quiet_s=0.5, timeout_s=DEADLINE_S)
            written[what] = attempt.written_after(election)
            sent_by[what] = sent(arena.stubs.take(), by=zombie.controller_id, since=woken_at)
            asked += has_logged(zombie, DEPOSED)
            with arena.blaming(zombie), arena.blaming(successor):
                arena.session.require_controller(election)
            pair.change_places()
    requests = [f"{what}: {each}" for what, some in sent_by.items() for each in some]
    figure("tries", len(written))
    figure("requests of those that woke up", len(requests))
    for request in requests:
        figure("sent", request)
    figure("tries in which ZooKeeper's answer after the pause came before the resignation", asked)
    assert {what: some for what, some in written.items() if some} == {}
    assert [request for request in requests if ", obeyed" in request] == []
    assert len(requests) <= SENT_AT_MOST, requests
    assert len(written) == TRIES

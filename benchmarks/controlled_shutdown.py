"""Controlled shutdown: a broker asks the controller to be relieved of its partitions.

Topics of one partition with two replicas each on five brokers. One broker asks to stop: a fifth of
the partitions needs a new leader, another fifth goes on without its follower.
"""

import struct
import time
from typing import NamedTuple

from rich.console import Console

from benchmarks.arena import QUIET_S, SMALLEST_ENTRY_BYTES, Arena
from benchmarks.asking.connection import ControllerConnection, Request, find_controller
from benchmarks.benchmark import Benchmark, Options, Result
from benchmarks.changes import Change, Figures, Setting, compare
from benchmarks.cluster import Cluster
from benchmarks.contenders import Contender
from benchmarks.delivery import Delivery
from benchmarks.errors import BenchmarkError
from benchmarks.stub.exchanges import Exchange, StubStatus
from benchmarks.zookeeper import Election
from regent.model.partition import TopicPartition

STOPPING = 5
REPLICATION_FACTOR = 2

_API_KEY = 7
_VERSION = 3  # since Kafka 2.4
_NOTHING_REMAINS = b"\0\0\1\0"  # no error, no partitions, no tagged fields


class Stop(NamedTuple):
    """What was seen of a stop; monotonic nanoseconds."""

    asked_at: int
    answered_at: int
    answer: bytes
    exchanges: list[Exchange]


class ControlledShutdown(Change[Stop]):
    """One broker asks to stop."""

    def __init__(self, arena: Arena) -> None:
        super().__init__(arena)
        self._hosted: dict[TopicPartition, tuple[int, ...]] = {
            tp: partition.replicas
            for tp, partition in arena.cluster.states.items()
            if STOPPING in partition.replicas
        }
        self._connection: ControllerConnection | None = None

    def reset(self) -> None:
        """The broker has stopped and started again; its partitions are as they were."""
        arena = self.arena
        if STOPPING in arena.session.broker_ids():
            arena.session.deregister(STOPPING)
        arena.register_missing()
        arena.stubs.wait_until_quiet(quiet_s=QUIET_S, timeout_s=arena.options.timeout_s)
        arena.restore(self._hosted)

    def prepare(self, election: Election) -> None:
        """The broker connects to the controller that it was sent last."""
        address = find_controller(self.arena.stubs.take(), election, STOPPING)
        timeout_s = self.arena.options.timeout_s
        self._connection = ControllerConnection(STOPPING, address, timeout_s=timeout_s)
        self._connection.require_version(_API_KEY, _VERSION)

    def happen(self, contender: Contender) -> Stop:
        """Ask, and wait for the answer and for what the brokers are sent."""
        arena, connection = self.arena, self._connection
        assert connection is not None, "prepare comes first"
        body = struct.pack(">iq", STOPPING, arena.broker_epochs[STOPPING]) + b"\0"
        asked_at = time.monotonic_ns()
        answer = connection.ask(Request(_API_KEY, _VERSION, body))
        answered_at = time.monotonic_ns()
        connection.close()

        def arrived(status: StubStatus) -> bool:
            entries = len(self._hosted) * SMALLEST_ENTRY_BYTES
            return all(size >= entries for size in status.update_metadata_bytes.values())

        arena.await_requests(contender, arrived)
        return Stop(asked_at, answered_at, answer, arena.stubs.take())

    def judge(self, seen: Stop, election: Election) -> Figures:
        if seen.answer != _NOTHING_REMAINS:
            raise BenchmarkError(f"the broker was answered {seen.answer[:100]!r}")
        arena, hosted = self.arena, self._hosted
        states = arena.session.states(list(hosted))
        for tp, state in states.items():
            if state.isr != (state.leader,) or state.leader == STOPPING:
                raise BenchmarkError(f"{tp} is left with {state}")
        led = {tp: state for tp, state in states.items() if hosted[tp][0] == STOPPING}
        followed = [tp for tp in hosted if tp not in led]
        delivery = Delivery(seen.exchanges, election, arena.broker_epochs)
        # The former leader is told; the former follower is stopped instead.
        receivers = {
            tp: hosted[tp] if tp in led else (state.leader,) for tp, state in states.items()
        }
        leaders_known_at = max(
            delivery.announced_at(led, hosted), delivery.taken_over_at(led, hosted, receivers)
        )
        all_known_at = max(
            leaders_known_at,
            delivery.announced_at(states, hosted),
            delivery.taken_over_at(states, hosted, receivers),
            delivery.stopped_at(STOPPING, followed),
        )

        def since(at: int) -> float:
            return (at - seen.asked_at) / 1e9

        return Figures(
            since(max(seen.answered_at, all_known_at)),
            {
                "request to its answer": since(seen.answered_at),
                "request to first request to a broker": since(delivery.first_request_at),
                "request to new leaders known to all": since(leaders_known_at),
                "request to everything answered by brokers": since(all_known_at),
                "requests to brokers, number": delivery.requests,
                "requests to brokers, MB": delivery.request_bytes / 1e6,
            },
        )


def run(options: Options, console: Console) -> Result:
    """Have the broker ask in turns."""
    cluster = Cluster(options.size, partitions_per_topic=1, replication_factor=REPLICATION_FACTOR)
    setting = Setting(
        cluster,
        ControlledShutdown,
        compared="request to its answer, and everybody informed",
        asks_controller=True,
    )
    return compare(setting, options, console)


BENCHMARK = Benchmark(
    name="controlled-shutdown",
    summary="From a broker's request to stop until it and all others have been answered.",
    unit="topics of one partition",
    default_size=25_000,
    run=run,
    default_samples=1,
)

"""Leaders that ask for ISR changes at a steady rate, as brokers ask.

A broker has one request in flight; what comes up meanwhile goes into the next one, all of it, each
partition once (``kafka.server.DefaultAlterPartitionManager``). Changes come up in equal numbers
every millisecond, whatever has been answered by then. The time of a change runs from that moment to
the answer, so it includes the wait for the request before.
"""

import gc
import math
import selectors
import time
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from benchmarks.asking.alter_partition import (
    IsrChange,
    Key,
    decode,
    encode,
    require_made,
)
from benchmarks.asking.connection import ControllerConnection
from benchmarks.errors import BenchmarkError
from regent.model.partition import TopicPartition

_TICK_NS = 1_000_000
_NS_IN_S = 1_000_000_000


@dataclass(slots=True, eq=False)
class LedPartition:
    """A partition as its leader knows it. Its last follower leaves the ISR, and returns."""

    tp: TopicPartition
    key: Key
    leader: int
    replicas: tuple[int, ...]
    leader_epoch: int
    isr: tuple[int, ...]
    partition_epoch: int

    def wanted(self) -> IsrChange:
        """The next change."""
        is_whole = len(self.isr) == len(self.replicas)
        isr = self.replicas[:-1] if is_whole else self.replicas
        return IsrChange(self.leader_epoch, self.partition_epoch, isr)


class Load(NamedTuple):
    """What was asked, and how it was answered. Times are nanoseconds.

    Attributes:
        changes: By change, from its coming up to its answer, in ascending order.
        requests: By request, from its first byte to its answer, in ascending order.
        began_at: When the first change came up; monotonic.
        ended_at: When the last one was answered.
    """

    changes: list[int]
    requests: list[int]
    began_at: int
    ended_at: int

    @property
    def throughput(self) -> float:
        """Changes answered in a second."""
        return len(self.changes) * _NS_IN_S / (self.ended_at - self.began_at)


class _Waiting(NamedTuple):
    partition: LedPartition
    came_up_at: int


@dataclass(slots=True, eq=False)
class Leader:
    """One broker with its connection to the controller."""

    broker_id: int
    connection: ControllerConnection
    waiting: deque[_Waiting] = field(default_factory=deque)
    in_flight: dict[Key, _Waiting] = field(default_factory=dict)
    asked: dict[Key, IsrChange] = field(default_factory=dict)
    sent_at: int = 0

    def send(self, broker_epochs: Mapping[int, int]) -> None:
        """Ask for all that is waiting; of changes of one partition the first."""
        self._choose()
        self.asked = {key: each.partition.wanted() for key, each in self.in_flight.items()}
        request = encode(self.broker_id, self.asked, broker_epochs)
        self.sent_at = time.monotonic_ns()
        self.connection.send(request)

    def _choose(self) -> None:
        later: deque[_Waiting] = deque()
        for each in self.waiting:
            if each.partition.key in self.in_flight:
                later.append(each)
            else:
                self.in_flight[each.partition.key] = each
        self.waiting = later

    def take(self, body: bytes) -> list[int]:
        """Take the answer; returns when its changes had come up.

        Raises:
            BenchmarkError: it is not that every change was made.
        """
        require_made(self.broker_id, self.asked, decode(body))
        came_up = []
        for key, (partition, came_up_at) in self.in_flight.items():
            partition.isr = self.asked[key].isr
            partition.partition_epoch += 1
            came_up.append(came_up_at)
        self.in_flight.clear()
        return came_up


def ask_for_changes(
    leaders: Sequence[Leader],
    partitions: Iterable[LedPartition],
    broker_epochs: Mapping[int, int],
    *,
    rate: int,
    timeout_s: float,
) -> Load:
    """Have leaders change the ISR of each of the partitions, so many a second, to the last answer.

    Args:
        partitions: In the order in which their changes come up. The same one may come again.
        rate: A multiple of 1,000.
        timeout_s: The longest time without an answer.

    Raises:
        BenchmarkError: a change was not made, or not answered in time.
    """
    gc.disable()  # of the kind that the controller is not to be charged with
    try:
        return _Asking(leaders, partitions, broker_epochs, rate=rate, timeout_s=timeout_s).run()
    finally:
        gc.enable()


class _Asking:
    def __init__(
        self,
        leaders: Sequence[Leader],
        partitions: Iterable[LedPartition],
        broker_epochs: Mapping[int, int],
        *,
        rate: int,
        timeout_s: float,
    ) -> None:
        self._leaders = {leader.broker_id: leader for leader in leaders}
        self._to_come = deque(partitions)
        self._broker_epochs = broker_epochs
        self._in_a_tick = rate * _TICK_NS // _NS_IN_S
        self._timeout_s = timeout_s
        self._changes: list[int] = []
        self._requests: list[int] = []
        self._unanswered = len(self._to_come)
        # Not that of epoll, which knows no times below a millisecond.
        self._selector = selectors.SelectSelector()

    def run(self) -> Load:
        with self._selector:
            for leader in self._leaders.values():
                self._selector.register(leader.connection.socket, selectors.EVENT_READ, leader)
            began_at = due = time.monotonic_ns()
            ended_at = began_at
            while self._unanswered:
                now = time.monotonic_ns()
                while self._to_come and due <= now:
                    self._come_up(due)
                    due += _TICK_NS
                for leader in self._leaders.values():
                    if leader.waiting and not leader.in_flight:
                        leader.send(self._broker_epochs)
                left_s = (due - time.monotonic_ns()) / _NS_IN_S if self._to_come else math.inf
                ended_at = self._await_answers(min(max(left_s, 0.0), self._timeout_s), ended_at)
        self._changes.sort()
        self._requests.sort()
        return Load(self._changes, self._requests, began_at, ended_at)

    def _come_up(self, now: int) -> None:
        for _ in range(min(self._in_a_tick, len(self._to_come))):
            partition = self._to_come.popleft()
            self._leaders[partition.leader].waiting.append(_Waiting(partition, now))

    def _await_answers(self, wait_s: float, last_at: int) -> int:
        """Take answers, for a while at most; returns when the last one was there."""
        for key, _ in self._selector.select(wait_s):
            leader: Leader = key.data
            body = leader.connection.receive()
            if body is None:
                continue
            last_at = now = time.monotonic_ns()
            self._requests.append(now - leader.sent_at)
            came_up = leader.take(body)
            self._changes += [now - at for at in came_up]
            self._unanswered -= len(came_up)
        if time.monotonic_ns() - last_at > self._timeout_s * _NS_IN_S:
            raise BenchmarkError(f"{self._unanswered} ISR changes are not answered")
        return last_at

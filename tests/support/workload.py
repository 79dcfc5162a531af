"""A producer that never stops, and an exact account of what was acknowledged to it."""

from __future__ import annotations

import contextlib
import itertools
import json
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from sandbox import KafkaTools, ManagedProcess, wait_until

_MESSAGES_PER_S = 200
_CONFIGURATION = """\
enable.idempotence=false
retries=2147483647
delivery.timeout.ms=120000
request.timeout.ms=10000
max.in.flight.requests.per.connection=1
"""


_STOPPED = ("Cannot perform operation after producer has been closed", "Producer closed while send")
"""What the tool reports of a record that it was about to send when SIGTERM closed its producer."""


class Workload:
    """kafka-verifiable-producer with ``acks=all``, and what it says of every message."""

    def __init__(self, process: ManagedProcess) -> None:
        self.process = process
        self._read = 0
        self._acknowledged: dict[str, int] = {}
        self._times: dict[int, list[int]] = {}
        self._failed: Counter[str] = Counter()

    def acknowledged(self) -> dict[str, int]:
        """Acknowledged messages with the time of their acknowledgement in ms, in that order."""
        self._read_on()
        return dict(self._acknowledged)

    def failed(self) -> list[str]:
        """Why records were given up, and how many: nothing that was refused for the tool's end."""
        self._read_on()
        return [f"{count} times {reason}" for reason, count in self._failed.items()]

    def wait_for_progress(self, messages: int = 100, *, timeout_s: float = 180.0) -> None:
        """Wait until so many more messages are acknowledged than are now."""
        before = len(self.acknowledged())
        wait_until(
            lambda: len(self.acknowledged()),
            until=lambda count: count >= before + messages,
            timeout_s=timeout_s,
            describe=f"{messages} more messages to be acknowledged",
            watch=[self.process],
        )

    def longest_gap_ms(self) -> int:
        """The longest time between two acknowledgements."""
        times = sorted(self.acknowledged().values())
        return max(b - a for a, b in itertools.pairwise(times))

    def longest_gap_of_a_partition_ms(self, *, outside: Iterable[tuple[int, int]] = ()) -> int:
        """The longest time between two acknowledgements of the same partition, outside of times in
        ms since the epoch. Use it with keys.
        """
        self._read_on()
        left_out = list(outside)
        gaps = (
            pair for times in self._times.values() for pair in itertools.pairwise(sorted(times))
        )
        return max(
            (b - a for a, b in gaps if not any(begin <= b and a <= end for begin, end in left_out)),
            default=0,
        )

    def _read_on(self) -> None:
        """Take in what the producer has printed since the last time."""
        with self.process.log_path.open("rb") as log:
            log.seek(self._read)
            complete = log.read().rpartition(b"\n")[0]
        self._read += len(complete)
        for line in complete.splitlines():
            if not line.startswith(b"{"):
                continue
            entry = json.loads(line)
            if entry["name"] == "producer_send_success":
                acknowledged_at = int(entry["timestamp"])
                self._acknowledged[entry["value"]] = acknowledged_at
                self._times.setdefault(int(entry["partition"]), []).append(acknowledged_at)
            elif entry["name"] == "producer_send_error":
                self._add_failure(f"{entry['exception']}: {entry['message']}")

    def _add_failure(self, reason: str) -> None:
        if not any(stopped in reason for stopped in _STOPPED):
            self._failed[reason] += 1


@contextlib.contextmanager
def workload(
    tools: KafkaTools, topic: str, directory: Path, *, keys: int | None = None
) -> Iterator[Workload]:
    """Produce to a topic until the end of the block.

    Args:
        keys: So many keys in turn, which spread the messages over the partitions. Without keys
            a producer writes to one partition for a while, then to another.
    """
    configuration = directory / "producer.properties"
    configuration.write_text(_CONFIGURATION)
    with tools.running(
        "kafka-verifiable-producer",
        f"--bootstrap-server={tools.bootstrap_servers}",
        f"--topic={topic}",
        "--acks=-1",
        f"--throughput={_MESSAGES_PER_S}",
        f"--producer.config={configuration}",
        *([] if keys is None else [f"--repeating-keys={keys}"]),
        log_path=directory / f"producer-{topic}.log",
    ) as process:
        yield Workload(process)


@contextlib.contextmanager
def lossless_workload(
    tools: KafkaTools, topic: str, directory: Path, *, keys: int | None = None
) -> Iterator[Workload]:
    """Produce until the end of the block; then every acknowledged message can be read."""
    with workload(tools, topic, directory, keys=keys) as producer:
        producer.wait_for_progress()
        yield producer
        producer.wait_for_progress()
    assert producer.failed() == []
    assert set(producer.acknowledged()) <= set(consume_all(tools, topic))


def consume_all(tools: KafkaTools, topic: str) -> list[str]:
    """Every message of a topic of which nothing has been deleted."""
    servers = f"--bootstrap-server={tools.bootstrap_servers}"
    ends = tools.run("kafka-get-offsets", servers, f"--topic={topic}").stdout.split()
    count = sum(int(end.rpartition(":")[2]) for end in ends)
    return tools.consume(topic, count, timeout_s=120)

"""The two controllers that are compared, as processes that take turns.

Each is started once and stays warm. Whose turn it is not is frozen until ZooKeeper has given up its
session, so that exactly one controller exists.
"""

import abc
import datetime
import json
import re
import sys
import time
from collections.abc import Iterator, Mapping
from typing import ClassVar, NamedTuple

from benchmarks.benchmark import KAFKA, KAFKA_VERSION, REGENT
from sandbox import KafkaBroker
from sandbox.java import TUNED_FOR_THROUGHPUT
from sandbox.process import ManagedProcess
from sandbox.state import StateDirectory

KAFKA_HEAP_MB = 4096
KAFKA_BROKER_ID = 6
REGENT_CONTROLLER_ID = 1_000_000_001
SESSION_TIMEOUT_MS = 6000
REQUEST_RATE = 10_000
"""Requests of one address that Regent takes in a second. The default is 2,000; the five stub
brokers share an address."""

# what Kafka's own start script gives a broker, but for the heap
_KAFKA_JAVA_OPTIONS = (
    *TUNED_FOR_THROUGHPUT,
    "-server",
    f"-Xms{KAFKA_HEAP_MB}m",
    "-XX:MaxGCPauseMillis=20",
    "-XX:InitiatingHeapOccupancyPercent=35",
    "-XX:+ExplicitGCInvokesConcurrent",
)


class LogLine(NamedTuple):
    """A line of a controller's log: wall clock nanoseconds and what it says."""

    at: int
    message: str


class Contender(abc.ABC):
    """A controller. `controller_id` is what it writes to `/controller`."""

    name: str
    controller_id: int
    milestones: ClassVar[Mapping[str, str]]
    """Steps of a failover that its log shows: a regular expression and what it means."""

    @property
    @abc.abstractmethod
    def process(self) -> ManagedProcess:
        """Its process."""

    @property
    def broker_id(self) -> int | None:
        """The broker that it is, if it is one."""
        return None

    def activate(self) -> int:
        """Start it, or wake it up, and return when; monotonic nanoseconds."""
        now = time.monotonic_ns()
        if self.process.is_paused:
            self.process.resume()
        else:
            self._start()
        return now

    @abc.abstractmethod
    def _start(self) -> None:
        """Start the process without waiting for it."""

    @abc.abstractmethod
    def log(self) -> Iterator[LogLine]:
        """Its log, as far as it carries times."""

    @abc.abstractmethod
    def close(self) -> None:
        """Kill it and remove what it has left."""


class KafkaController(Contender):
    """A Kafka broker without any replica, which becomes the controller."""

    name = KAFKA
    controller_id = KAFKA_BROKER_ID
    milestones: ClassVar = {
        r"successfully elected as the controller": "elected",
        r"Initializing controller context": "loading",
        r"Fetching topic deletions in progress": "loaded",
        r"Sending update metadata request": "first UpdateMetadata",
        r"Triggering online replica state changes": "replicas known",
        r"Triggering offline replica state changes": "requests queued",
        r"Ready to serve as the new controller": "ready",
    }
    _LINE = re.compile(r"^\[(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d),(\d{3})\] \w+ (.*)$", re.MULTILINE)

    def __init__(self, zookeeper: str, *, protocol_version: str) -> None:
        self._broker = KafkaBroker(
            zookeeper=zookeeper,
            version=KAFKA_VERSION,
            broker_id=KAFKA_BROKER_ID,
            inter_broker_protocol_version=protocol_version,
            session_timeout_ms=SESSION_TIMEOUT_MS,
            heap_mb=KAFKA_HEAP_MB,
            java_options=_KAFKA_JAVA_OPTIONS,
        )

    @property
    def process(self) -> ManagedProcess:
        return self._broker.process

    @property
    def broker_id(self) -> int | None:
        return KAFKA_BROKER_ID

    def _start(self) -> None:
        self._broker.launch()

    def log(self) -> Iterator[LogLine]:
        for second, millisecond, message in self._LINE.findall(self.process.log_of_this_run()):
            at = datetime.datetime.fromisoformat(second).astimezone()
            yield LogLine(int(at.timestamp()) * 10**9 + int(millisecond) * 10**6, message)

    def close(self) -> None:
        self._broker.close()


class RegentController(Contender):
    """Regent's controller without Kubernetes.

    `is_asked`: whether it serves brokers, which it must from inter.broker.protocol.version 2.7 on.
    """

    name = REGENT
    controller_id = REGENT_CONTROLLER_ID
    milestones: ClassVar = {
        r"Controller elected": "elected",
        r"connected to broker": "connected to the first broker",
        r"Controller failover completed": "requests queued",
    }

    def __init__(self, zookeeper: str, *, is_asked: bool = False) -> None:
        self._is_asked = is_asked
        self._state = StateDirectory("regent-benchmark")
        command = [sys.executable, "-m", "regent", "run", "--without-kubernetes"]
        command += ["--zookeeper", zookeeper, "--http-port", "0"]
        command += ["--controller-id", str(REGENT_CONTROLLER_ID)]
        command += ["--zookeeper-session-timeout-ms", str(SESSION_TIMEOUT_MS)]
        if is_asked:
            command += ["--endpoint-port", "0"]
            command += ["--endpoint-max-request-rate", str(REQUEST_RATE)]
        self._process = ManagedProcess("regent", command, log_path=self._state.path / "regent.log")

    @property
    def process(self) -> ManagedProcess:
        return self._process

    @property
    def broker_id(self) -> int | None:
        """As which it is registered for brokers that look for it there."""
        return REGENT_CONTROLLER_ID if self._is_asked else None

    def _start(self) -> None:
        self._process.start()

    def log(self) -> Iterator[LogLine]:
        return regents_log(self._process)

    def close(self) -> None:
        self._process.kill()
        self._state.close()


def regents_log(process: ManagedProcess) -> Iterator[LogLine]:
    """What the present run of a Regent has logged."""
    for line in process.log_of_this_run().splitlines():
        try:
            record = json.loads(line)
            at = datetime.datetime.fromisoformat(record["time"])
        except (ValueError, KeyError, TypeError):
            continue
        yield LogLine(int(at.timestamp() * 1e6) * 1000, str(record.get("message")))

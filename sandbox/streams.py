"""A Kafka Streams application, as the real client of a cluster.

Kafka's examples are not published, the applications of its system tests are.
"""

from pathlib import Path

from sandbox.java import (
    TUNED_FOR_QUICK_START,
    java_command,
    write_log_configuration,
    write_properties,
)
from sandbox.kafka_jars import DEFAULT_VERSION, streams_jars, version_tuple
from sandbox.process import ManagedProcess
from sandbox.server import Startable
from sandbox.state import StateDirectory
from sandbox.waiting import wait_until

START_TIMEOUT_S = 180.0

_APPLICATION = "org.apache.kafka.streams.tests.StreamsNamedRepartitionTest"
_RUNNING = "REBALANCING -> RUNNING"
_HEAP_MB = 256
_SESSION_TIMEOUT_MS = 10_000  # a stopped one stays in its group for so long, as Streams has it
_EXACTLY_ONCE_V2_SINCE = (3, 0)  # its name before is exactly_once_beta, since 2.6 (KIP-447)


class StreamsApplication(Startable):
    """Adds up the integers of a topic by their remainder modulo 9, exactly once each.

    It is Kafka's `StreamsNamedRepartitionTest`. Every integer (as text, of any key) makes a record
    of the output topic: the remainder as text, and the sum so far in four bytes. Both topics have
    to exist; the application makes `internal_topics` by itself. Versions from 2.6 on have it.

    Attributes:
        internal_topics: What the records are distributed through, and the log of the sums.
    """

    def __init__(
        self,
        bootstrap_servers: str,
        *,
        application_id: str,
        input_topic: str,
        output_topic: str,
        replication_factor: int,
        version: str = DEFAULT_VERSION,
    ) -> None:
        names = ("grouped-stream-repartition", "count-store-changelog")
        self.internal_topics = tuple(f"{application_id}-{name}" for name in names)
        is_v2 = version_tuple(version) >= _EXACTLY_ONCE_V2_SINCE
        self._properties = {
            "bootstrap.servers": bootstrap_servers,
            "application.id": application_id,
            "input.topic": input_topic,
            "aggregation.topic": output_topic,
            "add.operations": False,
            "replication.factor": replication_factor,
            "session.timeout.ms": _SESSION_TIMEOUT_MS,
            "processing.guarantee": "exactly_once_v2" if is_v2 else "exactly_once_beta",
        }
        self._state = StateDirectory(application_id)
        self.process = self._make_process(version)

    def _make_process(self, version: str) -> ManagedProcess:
        directory = self._state.path
        log_configuration = directory / "log4j.properties"
        properties = directory / "streams.properties"
        write_log_configuration(log_configuration, level="WARN")
        write_properties(
            properties, {**self._properties, "state.dir": self._state.subdirectory("stores")}
        )
        # a killed one would leave the library of its stores there
        temporary = f"-Djava.io.tmpdir={self._state.subdirectory('tmp')}"
        command = java_command(
            streams_jars(version),
            _APPLICATION,
            [properties],
            heap_mb=_HEAP_MB,
            log_configuration=log_configuration,
            options=(*TUNED_FOR_QUICK_START, temporary),
        )
        name = str(self._properties["application.id"])
        return ManagedProcess(name, command, log_path=directory / "application.log")

    @property
    def log_path(self) -> Path:
        """Everything it has printed, over all runs."""
        return self.process.log_path

    def start(self) -> None:
        """Start it and wait until it processes records; its internal topics exist then."""
        self.process.start()
        wait_until(
            self.process.log_of_this_run,
            until=lambda log: _RUNNING in log,
            timeout_s=START_TIMEOUT_S,
            describe=f"{self.process.name} to process records",
            watch=[self.process],
        )

    def stop(self) -> None:
        """Stop it in an orderly way: what it has begun is committed."""
        self.process.stop()

    def close(self) -> None:
        """Kill it and remove its stores."""
        self.process.kill()
        self._state.close()

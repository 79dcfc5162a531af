"""Kafka's own command line tools, as the real client of a cluster.

They are named as Kafka's scripts are. Which class a script runs changes between versions, so
each script has a list of candidates, newest first, and the jars decide.
"""

import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from sandbox.errors import ToolError, UnknownToolError, VersionError
from sandbox.java import java_command, write_log_configuration
from sandbox.kafka_jars import DEFAULT_VERSION, kafka_jars, version_tuple
from sandbox.process import ManagedProcess, Outcome, run_guarded
from sandbox.resident_tools import resident_tools

TOOL_TIMEOUT_S = 180.0
_HEAP_MB = 256

# script name -> the classes that it runs, newest first
_CLASSES: dict[str, tuple[str, ...]] = {
    "kafka-acls": ("kafka.admin.AclCommand",),
    "kafka-broker-api-versions": ("kafka.admin.BrokerApiVersionsCommand",),
    "kafka-configs": ("kafka.admin.ConfigCommand",),
    "kafka-console-consumer": (
        "org.apache.kafka.tools.consumer.ConsoleConsumer",
        "kafka.tools.ConsoleConsumer",
    ),
    "kafka-console-producer": (
        "org.apache.kafka.tools.ConsoleProducer",
        "kafka.tools.ConsoleProducer",
    ),
    "kafka-consumer-groups": (
        "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
        "kafka.admin.ConsumerGroupCommand",
    ),
    "kafka-dump-log": ("org.apache.kafka.tools.DumpLogSegments", "kafka.tools.DumpLogSegments"),
    "kafka-features": ("org.apache.kafka.tools.FeatureCommand", "kafka.admin.FeatureCommand"),
    "kafka-get-offsets": ("org.apache.kafka.tools.GetOffsetShell", "kafka.tools.GetOffsetShell"),
    "kafka-leader-election": (
        "org.apache.kafka.tools.LeaderElectionCommand",
        "kafka.admin.LeaderElectionCommand",
    ),
    "kafka-log-dirs": ("org.apache.kafka.tools.LogDirsCommand", "kafka.admin.LogDirsCommand"),
    "kafka-preferred-replica-election": ("kafka.admin.PreferredReplicaLeaderElectionCommand",),
    "kafka-producer-perf-test": ("org.apache.kafka.tools.ProducerPerformance",),
    "kafka-reassign-partitions": (
        "org.apache.kafka.tools.reassign.ReassignPartitionsCommand",
        "kafka.admin.ReassignPartitionsCommand",
    ),
    "kafka-topics": ("org.apache.kafka.tools.TopicCommand", "kafka.admin.TopicCommand"),
    "kafka-verifiable-consumer": ("org.apache.kafka.tools.VerifiableConsumer",),
    "kafka-verifiable-producer": ("org.apache.kafka.tools.VerifiableProducer",),
}
_TOPICS_THROUGH_BROKERS_SINCE = (2, 2)
_PRODUCER_BOOTSTRAP_SERVER_SINCE = (2, 5)
_REQUEST_TIMEOUT_MS = 30_000  # the console producer's 1.5 s has a busy broker get messages twice


class KafkaTools:
    """The tools of one Kafka version, for one cluster.

    `zookeeper` (with the cluster's chroot) is needed only for what old versions do there.
    """

    def __init__(
        self,
        bootstrap_servers: str,
        *,
        version: str = DEFAULT_VERSION,
        zookeeper: str | None = None,
    ) -> None:
        self.bootstrap_servers = bootstrap_servers
        self.version = version
        self.zookeeper = zookeeper
        self._jars = kafka_jars(version)

    def run(
        self,
        tool: str,
        *arguments: str | Path,
        stdin: str | None = None,
        timeout_s: float = TOOL_TIMEOUT_S,
        check: bool = True,
    ) -> Outcome:
        """Run a tool by its script's name (`kafka-topics`) or a class by its full name.

        Raises:
            UnknownToolError: this version has no such tool.
            ToolError: with `check`, it ended with an error.
            TimeoutError: it did not end in time, and was killed.
        """
        result = self._run(tool, arguments, stdin=stdin, timeout_s=timeout_s)
        if check and result.exit_code != 0:
            shown = " ".join([tool, *(str(argument) for argument in arguments)])
            raise ToolError(
                f"{shown} failed ({result.exit_code}):\n{result.stdout}\n{result.stderr}"
            )
        return result

    def _run(
        self, tool: str, arguments: Sequence[str | Path], *, stdin: str | None, timeout_s: float
    ) -> Outcome:
        # Nearly all calls are of the default version. Older ones cannot end a tool completely.
        if self.version == DEFAULT_VERSION:
            result = resident_tools(self.version).run(
                self.main_class(tool), arguments, stdin=stdin or "", timeout_s=timeout_s
            )
            if result is not None:
                return result
        with self._command(tool, arguments) as command:
            return run_guarded(command, name=tool, stdin=stdin, timeout_s=timeout_s)

    def run_attached(self, tool: str, *arguments: str | Path) -> int:
        """Run a tool on the terminal of this process and return its exit status.

        Raises:
            UnknownToolError: this version has no such tool.
        """
        with self._command(tool, arguments) as command:
            return subprocess.run(command, check=False).returncode

    @contextmanager
    def running(
        self, tool: str, *arguments: str | Path, log_path: Path
    ) -> Iterator[ManagedProcess]:
        """A tool that works in the background; all that it prints goes to `log_path`.

        It is stopped by SIGTERM, upon which Kafka's tools finish what they have begun.

        Raises:
            UnknownToolError: this version has no such tool.
        """
        with self._command(tool, arguments) as command:
            process = ManagedProcess(tool, command, log_path=log_path)
            process.start()
            try:
                yield process
            finally:
                process.stop()

    @contextmanager
    def _command(self, tool: str, arguments: Sequence[str | Path]) -> Iterator[list[str]]:
        """The command line of a tool; its log goes to standard error, from warnings up."""
        main_class = self.main_class(tool)
        with tempfile.TemporaryDirectory(prefix="regent-sandbox-tool-") as directory:
            log_configuration = Path(directory) / "log4j.properties"
            write_log_configuration(log_configuration, level="WARN", stream="err")
            yield java_command(
                self._jars,
                main_class,
                arguments,
                heap_mb=_HEAP_MB,
                log_configuration=log_configuration,
            )

    def create_topic(
        self,
        topic: str,
        *,
        partitions: int = 1,
        replication_factor: int = 1,
        config: dict[str, str] | None = None,
    ) -> None:
        """Create a topic with kafka-topics."""
        settings = [f"--config={name}={value}" for name, value in (config or {}).items()]
        self.topics(
            "--create",
            f"--topic={topic}",
            f"--partitions={partitions}",
            f"--replication-factor={replication_factor}",
            *settings,
        )

    def topics(self, *arguments: str) -> str:
        """kafka-topics with the address it needs in this version: brokers, or ZooKeeper."""
        if version_tuple(self.version) >= _TOPICS_THROUGH_BROKERS_SINCE:
            address = f"--bootstrap-server={self.bootstrap_servers}"
        elif self.zookeeper is not None:
            address = f"--zookeeper={self.zookeeper}"
        else:
            raise VersionError(f"kafka-topics {self.version} needs the address of ZooKeeper")
        return self.run("kafka-topics", address, *arguments).stdout

    def produce(
        self,
        topic: str,
        lines: Sequence[str],
        *,
        acks: Literal["0", "1", "all"] = "all",
        timeout_s: float = TOOL_TIMEOUT_S,
    ) -> None:
        """Produce one message per line with the console producer.

        Raises:
            ToolError: a message was not accepted. The producer only logs that and ends well,
                so its log is what decides.
        """
        new = version_tuple(self.version) >= _PRODUCER_BOOTSTRAP_SERVER_SINCE
        result = self.run(
            "kafka-console-producer",
            "--bootstrap-server" if new else "--broker-list",
            self.bootstrap_servers,
            f"--topic={topic}",
            f"--request-required-acks={acks}",
            f"--request-timeout-ms={_REQUEST_TIMEOUT_MS}",
            stdin="".join(f"{line}\n" for line in lines),
            timeout_s=timeout_s,
        )
        if "ERROR" in result.stderr:
            raise ToolError(f"producing to {topic} failed:\n{result.stderr}")

    def consume(
        self,
        topic: str,
        count: int,
        *,
        partition: int | None = None,
        timeout_s: float = 30.0,
    ) -> list[str]:
        """The first `count` messages of a topic, by the console consumer.

        It is in a group, so brokers make `__consumer_offsets` if it is not there yet: on any of the
        brokers that they take for live. With `partition` it reads only that one and needs no group.

        Raises:
            ToolError: there were fewer within `timeout_s`.
        """
        where = ["--from-beginning"]
        if partition is not None:
            where = [f"--partition={partition}", "--offset=earliest"]
        result = self.run(
            "kafka-console-consumer",
            f"--bootstrap-server={self.bootstrap_servers}",
            f"--topic={topic}",
            *where,
            f"--max-messages={count}",
            f"--timeout-ms={round(timeout_s * 1000)}",
            timeout_s=timeout_s + TOOL_TIMEOUT_S,
            check=False,
        )
        messages = result.stdout.splitlines()
        if len(messages) < count:
            raise ToolError(
                f"consumed {len(messages)} of {count} messages of {topic} in {timeout_s:g} s:\n"
                f"{messages}\n{result.stderr}"
            )
        return messages

    def dump_log(self, segment: Path) -> str:
        """What kafka-dump-log says about a log segment, with the records."""
        return self.run("kafka-dump-log", "--print-data-log", f"--files={segment}").stdout

    def main_classes(self) -> dict[str, str]:
        """The class that each script of this version runs."""
        found = {tool: self._jars.first_class(classes) for tool, classes in _CLASSES.items()}
        return {tool: name for tool, name in found.items() if name is not None}

    def main_class(self, tool: str) -> str:
        """The class that a script runs.

        Raises:
            UnknownToolError: this version has no such tool.
        """
        candidates = _CLASSES.get(tool)
        if candidates is None and "." in tool:
            return tool
        found = self._jars.first_class(candidates or ())
        if found is None:
            raise UnknownToolError(f"Kafka {self.version} has no tool {tool!r}")
        return found

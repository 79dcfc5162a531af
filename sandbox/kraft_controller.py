"""A real KRaft controller that takes a ZooKeeper-mode cluster over (KIP-866)."""

from pathlib import Path

from sandbox.errors import ToolError
from sandbox.java import java_command, write_log_configuration, write_properties
from sandbox.kafka_jars import DEFAULT_VERSION, kafka_jars
from sandbox.ports import LOOPBACK, can_connect
from sandbox.process import ManagedProcess, run_guarded
from sandbox.server import Server
from sandbox.waiting import wait_until

START_TIMEOUT_S = 180.0
STOP_TIMEOUT_S = 30.0
FORMAT_TIMEOUT_S = 120.0

_LISTENER = "CONTROLLER"
_HEAP_MB = 384


class KRaftController(Server):
    """The only member of a KRaft quorum, ready to migrate the cluster below `zookeeper`.

    It waits until all brokers of the cluster have been restarted with `broker_config()`, then
    takes `/controller` over and copies the metadata.
    """

    def __init__(
        self,
        *,
        zookeeper: str,
        cluster_id: str,
        version: str = DEFAULT_VERSION,
        node_id: int = 3000,
        state: Path | None = None,
        keep_state: bool = False,
    ) -> None:
        super().__init__(f"kraft-controller-{node_id}", state=state, keep_state=keep_state)
        self.node_id = node_id
        self._zookeeper = zookeeper
        self._cluster_id = cluster_id
        self._jars = kafka_jars(version)
        self._log_configuration = self.state_path / "log4j.properties"
        self._properties = self.state_path / "server.properties"
        self.process = ManagedProcess(
            self.name,
            self._java("kafka.Kafka", [self._properties]),
            log_path=self.state_path / "server.log",
            stop_timeout_s=STOP_TIMEOUT_S,
        )

    def _java(self, main_class: str, arguments: list[str | Path]) -> list[str]:
        return java_command(
            self._jars,
            main_class,
            arguments,
            heap_mb=_HEAP_MB,
            log_configuration=self._log_configuration,
        )

    def broker_config(self) -> dict[str, str]:
        """What brokers need besides their own configuration to be migrated.

        Their `listener.security.protocol.map` has to map CONTROLLER, too.
        """
        return {
            "zookeeper.metadata.migration.enable": "true",
            "controller.quorum.voters": f"{self.node_id}@{LOOPBACK}:{self.port}",
            "controller.listener.names": _LISTENER,
        }

    def launch(self) -> None:
        """Format the log directory, if it is not, and start the process."""
        config = {
            **self.broker_config(),
            "process.roles": "controller",
            "node.id": self.node_id,
            "listeners": f"{_LISTENER}://{LOOPBACK}:{self.port}",
            "listener.security.protocol.map": f"{_LISTENER}:PLAINTEXT",
            "zookeeper.connect": self._zookeeper,
            "log.dirs": self.state_path / "data",
        }
        write_properties(self._properties, config)
        write_log_configuration(self._log_configuration)
        if not (self.state_path / "data").exists():
            self._format()
        self.process.start()

    def _format(self) -> None:
        arguments: list[str | Path] = [
            "format",
            # As one argument: an id may begin with a hyphen.
            f"--cluster-id={self._cluster_id}",
            "--config",
            self._properties,
        ]
        command = self._java("kafka.tools.StorageTool", arguments)
        result = run_guarded(command, name="kafka-storage", timeout_s=FORMAT_TIMEOUT_S)
        if result.exit_code != 0:
            raise ToolError(f"kafka-storage format failed:\n{result.stdout}\n{result.stderr}")

    def wait_until_ready(self) -> None:
        """Wait until it accepts connections."""
        wait_until(
            lambda: can_connect(self.port),
            timeout_s=START_TIMEOUT_S,
            describe=f"{self.name} (port {self.port}) to listen",
            watch=[self],
        )

"""Real ZooKeeper on loopback: one server, or an ensemble.

The server comes out of a Kafka version's jars (3.9.1 ships ZooKeeper 3.8; 2.4.1 ships 3.5 and
1.1.1 ships 3.4). It forgets durability against power loss (no fsync) and keeps everything
else: data survives stop, kill and restart of the process.
"""

import socket
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from sandbox.java import (
    TUNED_FOR_QUICK_START,
    java_command,
    write_log_configuration,
    write_properties,
)
from sandbox.kafka_jars import DEFAULT_VERSION, kafka_jars
from sandbox.ports import LOOPBACK, lease_port
from sandbox.process import ManagedProcess
from sandbox.server import Server, Startable, close_all, stop_all
from sandbox.waiting import wait_until

START_TIMEOUT_S = 180.0
TICK_TIME_MS = 500
SESSION_TIMEOUT_MIN_MS = 1000
SESSION_TIMEOUT_MAX_MS = 60_000

# the web server of 3.5 and newer; beans of a log4j class that reload4j has not, in 3.4
_FEATURES_OFF = ("-Dzookeeper.admin.enableServer=false", "-Dzookeeper.jmx.log4j.disable=true")
_MAIN_CLASS = "org.apache.zookeeper.server.quorum.QuorumPeerMain"


def four_letter_word(port: int, word: str, *, timeout_s: float = 2.0) -> str:
    """What the server answers to one of its monitoring commands, such as `ruok` or `srvr`.

    Raises:
        OSError: nothing answers.
    """
    with socket.create_connection((LOOPBACK, port), timeout=timeout_s) as connection:
        connection.sendall(word.encode())
        chunks = []
        while chunk := connection.recv(65536):
            chunks.append(chunk)
    return b"".join(chunks).decode(errors="replace")


class ZooKeeper(Server):
    """One ZooKeeper server, standalone unless it is made by a `ZooKeeperEnsemble`.

    `version` is the Kafka version whose ZooKeeper is run; `config` adds to zoo.cfg.
    """

    def __init__(
        self,
        *,
        version: str = DEFAULT_VERSION,
        heap_mb: int = 256,
        tick_time_ms: int = TICK_TIME_MS,
        config: Mapping[str, str | int] | None = None,
        java_options: Sequence[str] = TUNED_FOR_QUICK_START,
        state: Path | None = None,
        keep_state: bool = False,
        name: str = "zookeeper",
    ) -> None:
        self.version = version
        super().__init__(name, state=state, keep_state=keep_state)
        self._config = {
            "tickTime": tick_time_ms,
            "minSessionTimeout": SESSION_TIMEOUT_MIN_MS,
            "maxSessionTimeout": SESSION_TIMEOUT_MAX_MS,
            "maxClientCnxns": 0,
            "admin.enableServer": "false",
            "4lw.commands.whitelist": "*",
            "forceSync": "no",
            "preAllocSize": 1024,
            "clientPortAddress": LOOPBACK,
            "clientPort": self.port,
            "dataDir": self._state.subdirectory("data"),
            **(config or {}),
        }
        self._heap_mb = heap_mb
        self._java_options = java_options
        self.process = self._make_process()

    def change_version(self, version: str) -> None:
        """Run another version's ZooKeeper on the same data from the next start on.

        Raises:
            RuntimeError: it is running.
        """
        if self.is_running:
            raise RuntimeError(f"{self.name} is running; stop it before changing its version")
        self.version = version
        self.process = self._make_process()

    def _make_process(self) -> ManagedProcess:
        log_configuration = self._state.path / "log4j.properties"
        write_log_configuration(log_configuration)
        command = java_command(
            kafka_jars(self.version),
            _MAIN_CLASS,
            [self._state.path / "zoo.cfg"],
            heap_mb=self._heap_mb,
            log_configuration=log_configuration,
            options=[*self._java_options, *_FEATURES_OFF],
        )
        return ManagedProcess(self.name, command, log_path=self._state.path / "server.log")

    @property
    def connect_string(self) -> str:
        """`host:port`; append a path such as `/kafka` for a chroot."""
        return f"{LOOPBACK}:{self.port}"

    @property
    def mode(self) -> str | None:
        """`standalone`, `leader`, `follower` or `observer`; None while it serves no client."""
        try:
            answer = four_letter_word(self.port, "srvr")
        except OSError:
            return None
        for line in answer.splitlines():
            if line.startswith("Mode: "):
                return line.removeprefix("Mode: ").strip()
        return None

    def join(
        self, *, server_id: int, servers: Mapping[int, str], is_observer: bool = False
    ) -> None:
        """Make it a member of an ensemble; `servers` maps ids to `host:peer-port:election-port`,
        with `:observer` for a member without a vote.

        To be called before the first start.
        """
        if is_observer:
            self._config["peerType"] = "observer"
        (self._state.subdirectory("data") / "myid").write_text(f"{server_id}\n")
        self._config |= {"initLimit": 20, "syncLimit": 10}
        self._config |= {f"server.{number}": address for number, address in servers.items()}

    def launch(self) -> None:
        """Start the process without waiting for it to serve."""
        write_properties(self._state.path / "zoo.cfg", self._config)
        self.process.start()

    def wait_until_ready(self, *, timeout_s: float = START_TIMEOUT_S) -> None:
        """Wait until it serves clients (in an ensemble: until it is part of a quorum)."""
        wait_until(
            lambda: self.mode,
            timeout_s=timeout_s,
            describe=f"{self.name} (port {self.port}) to serve clients",
            watch=[self],
        )


class ZooKeeperEnsemble(Startable):
    """Several ZooKeeper servers that form a quorum. `servers` are the single ones.

    The last `observers` of them have no vote. The other keyword arguments are those of `ZooKeeper`.
    """

    def __init__(
        self,
        size: int = 3,
        *,
        observers: int = 0,
        version: str = DEFAULT_VERSION,
        heap_mb: int = 256,
        tick_time_ms: int = TICK_TIME_MS,
        config: Mapping[str, str | int] | None = None,
        java_options: Sequence[str] = TUNED_FOR_QUICK_START,
        keep_state: bool = False,
    ) -> None:
        self.servers = [
            ZooKeeper(
                version=version,
                heap_mb=heap_mb,
                tick_time_ms=tick_time_ms,
                config=config,
                java_options=java_options,
                keep_state=keep_state,
                name=f"zookeeper-{number}",
            )
            for number in range(1, size + 1)
        ]
        self._leases = [lease_port() for _ in range(2 * size)]
        ports = [lease.port for lease in self._leases]
        voters = size - observers
        addresses = {
            number: f"{LOOPBACK}:{ports[2 * number - 2]}:{ports[2 * number - 1]}"
            + (":observer" if number > voters else "")
            for number in range(1, size + 1)
        }
        for number, server in enumerate(self.servers, start=1):
            server.join(server_id=number, servers=addresses, is_observer=number > voters)

    @property
    def connect_string(self) -> str:
        """All servers; append a path such as `/kafka` for a chroot."""
        return ",".join(server.connect_string for server in self.servers)

    @property
    def leader(self) -> ZooKeeper:
        """The server that leads now.

        Raises:
            LookupError: none does.
        """
        return self.server_with_mode("leader")

    def server_with_mode(self, mode: str) -> ZooKeeper:
        """The first server that is a `leader`, a `follower` or an `observer` now.

        Raises:
            LookupError: none is.
        """
        for server in self.servers:
            if server.is_running and not server.process.is_paused and server.mode == mode:
                return server
        raise LookupError(f"no server of the ensemble is a {mode}")

    def start(self) -> None:
        """Start the servers that do not run and wait until all serve clients."""
        for server in self.servers:
            if not server.is_running:
                server.launch()
        deadline = time.monotonic() + START_TIMEOUT_S
        for server in self.servers:
            server.wait_until_ready(timeout_s=max(deadline - time.monotonic(), 1.0))

    def stop(self) -> None:
        """Stop all servers in an orderly way, at the same time."""
        stop_all(self.servers)

    def close(self) -> None:
        """Kill the servers, remove their data, give their ports back."""
        close_all(self.servers)
        for lease in self._leases:
            lease.release()

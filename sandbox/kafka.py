"""Real, unmodified Kafka brokers in ZooKeeper mode on loopback: one, or a cluster.

While no other process holds `/controller`, a stock broker becomes the controller itself; that is
what these brokers do too.
"""

import contextlib
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from sandbox.errors import VersionError
from sandbox.java import (
    TUNED_FOR_QUICK_START,
    java_command,
    write_log_configuration,
    write_properties,
)
from sandbox.kafka_jars import DEFAULT_VERSION, KafkaJars, kafka_jars, version_tuple
from sandbox.ports import LOOPBACK, can_connect
from sandbox.process import ManagedProcess
from sandbox.server import Server, Startable, close_all, stop_all
from sandbox.starting import start_permit
from sandbox.waiting import wait_until
from sandbox.znodes import end_session_of_owner, znode_exists

START_TIMEOUT_S = 180.0
STOP_TIMEOUT_S = 120.0  # one that is killed instead has not stopped cleanly
SESSION_TIMEOUT_MS = 6000

_FIRST_WITHOUT_ZOOKEEPER = (4,)
_MAIN_CLASS = "kafka.Kafka"
_STARTED_LINE = "started (kafka.server.KafkaServer)"

Config = Mapping[str, str | int | bool]

# small buffers and pools: these brokers serve tests, often several at a time on two processors
_SMALL: dict[str, str | int | bool] = {
    "num.network.threads": 2,
    "num.io.threads": 4,
    "background.threads": 2,
    "num.replica.fetchers": 1,
    "num.recovery.threads.per.data.dir": 1,
    "log.cleaner.dedupe.buffer.size": 4 * 1024 * 1024,
    "offsets.topic.num.partitions": 5,
    "transaction.state.log.num.partitions": 5,
}
# nothing happens behind a test's back, and nothing waits longer than it must
_PREDICTABLE: dict[str, str | int | bool] = {
    "auto.create.topics.enable": False,
    "delete.topic.enable": True,
    "unclean.leader.election.enable": False,
    "min.insync.replicas": 1,
    "default.replication.factor": 1,
    "num.partitions": 1,
    "group.initial.rebalance.delay.ms": 0,
    "controlled.shutdown.enable": True,
    "controlled.shutdown.retry.backoff.ms": 500,
    "zookeeper.connection.timeout.ms": 15_000,
}


class KafkaBroker(Server):
    """One broker.

    `zookeeper` is a connect string, with a chroot if wanted. `inter_broker_protocol_version`
    is the broker's own default when it is None. `config` overrides everything else; it may
    be changed between two runs. Stopping is a controlled shutdown, unless
    `controlled.shutdown.enable` is turned off.
    """

    def __init__(
        self,
        *,
        zookeeper: str,
        version: str = DEFAULT_VERSION,
        broker_id: int = 1,
        inter_broker_protocol_version: str | None = None,
        rack: str | None = None,
        session_timeout_ms: int = SESSION_TIMEOUT_MS,
        internal_replication_factor: int = 1,
        config: Config | None = None,
        log_levels: Mapping[str, str] | None = None,
        heap_mb: int = 384,
        java_options: Sequence[str] = TUNED_FOR_QUICK_START,
        log_directories: int = 1,
        state: Path | None = None,
        keep_state: bool = False,
    ) -> None:
        self.broker_id = broker_id
        self.version = version
        self._zookeeper = zookeeper
        self._heap_mb = heap_mb
        self._java_options = java_options
        jars = _jars_with_zookeeper(version)
        super().__init__(_name(version, broker_id), state=state, keep_state=keep_state)
        self.config: dict[str, str | int | bool] = {
            **_SMALL,
            **_PREDICTABLE,
            "offsets.topic.replication.factor": internal_replication_factor,
            "transaction.state.log.replication.factor": internal_replication_factor,
            "transaction.state.log.min.isr": 1,
            "zookeeper.session.timeout.ms": session_timeout_ms,
            "broker.id": broker_id,
            "listeners": f"PLAINTEXT://{LOOPBACK}:{self.port}",
            "zookeeper.connect": zookeeper,
            "log.dirs": ",".join(str(path) for path in self._log_directories(log_directories)),
        }
        if inter_broker_protocol_version is not None:
            self.config["inter.broker.protocol.version"] = inter_broker_protocol_version
        if rack is not None:
            self.config["broker.rack"] = rack
        self.config |= config or {}
        self._log_levels = dict(log_levels or {})
        self._started_pid: int | None = None
        self.process = self._make_process(jars)

    def _log_directories(self, count: int) -> list[Path]:
        return [self._state.path / f"data-{number}" for number in range(1, count + 1)]

    def _make_process(self, jars: KafkaJars) -> ManagedProcess:
        command = java_command(
            jars,
            _MAIN_CLASS,
            [self._state.path / "server.properties"],
            heap_mb=self._heap_mb,
            log_configuration=self._state.path / "log4j.properties",
            options=self._java_options,
        )
        return ManagedProcess(
            self.name,
            command,
            log_path=self._state.path / "server.log",
            stop_timeout_s=STOP_TIMEOUT_S,
        )

    @property
    def bootstrap_servers(self) -> str:
        """Where clients connect."""
        return f"{LOOPBACK}:{self.port}"

    @property
    def is_ready(self) -> bool:
        """It has registered itself in ZooKeeper and accepts connections.

        Every version writes the awaited line after its registration.
        """
        if not self.is_running:
            return False
        if self._started_pid != self.process.pid:
            if _STARTED_LINE not in self.process.log_of_this_run():
                return False
            self._started_pid = self.process.pid  # logs grow: look for the line once per run
        return can_connect(self.port)

    @property
    def is_registered(self) -> bool:
        """It stands in ZooKeeper; a killed broker does until its session has run out."""
        try:
            return znode_exists(self._zookeeper, f"/brokers/ids/{self.broker_id}")
        except OSError:
            return False

    def end_session(self) -> None:
        """End its ZooKeeper session at once; for a broker that was killed or is paused."""
        end_session_of_owner(self._zookeeper, f"/brokers/ids/{self.broker_id}")

    def change_version(self, version: str) -> None:
        """Run another version from the next start on, as an upgrade of the binaries does.

        Directories, port, log and configuration stay. Without an
        `inter.broker.protocol.version` in `config` that is the new version's default, too.

        Raises:
            VersionError: there is no such version in ZooKeeper mode.
            RuntimeError: it is running.
        """
        if self.is_running:
            raise RuntimeError(f"{self.name} is running; stop it before its version is changed")
        jars = _jars_with_zookeeper(version)
        self.version = version
        self.name = _name(version, self.broker_id)
        self.process = self._make_process(jars)

    def launch(self) -> None:
        """Start the process without waiting for it to be ready.

        A broker that finds itself registered still, because it was killed a moment ago, gives
        up; so this first ends the session of the former run.

        Raises:
            WaitTimeoutError: as `wait_for_old_registration` does.
            RuntimeError: it is running already.
        """
        if self.is_running:
            raise RuntimeError(f"{self.name} is running already")
        self.wait_for_old_registration()
        write_properties(self._state.path / "server.properties", self.config)
        write_log_configuration(self._state.path / "log4j.properties", levels=self._log_levels)
        self.process.start()

    def start(self) -> None:
        """Start it and wait until it is ready."""
        if not self.is_running:
            self.wait_for_old_registration()
        with start_permit():
            super().start()

    def wait_for_old_registration(self) -> None:
        """Wait until no broker is registered with this id. Ends the session of its own last run.

        Raises:
            WaitTimeoutError: the registration stays; another broker with this id may be running.
        """
        if self._started_pid is not None:
            with contextlib.suppress(OSError):
                self.end_session()
        wait_until(
            lambda: not self.is_registered,
            timeout_s=2 * int(self.config["zookeeper.session.timeout.ms"]) / 1000 + 60,
            describe=f"the old registration of broker {self.broker_id} to expire",
        )

    def wait_until_ready(self, *, timeout_s: float = START_TIMEOUT_S) -> None:
        """Wait until it is registered and accepts connections."""
        wait_until(
            lambda: self.is_ready,
            timeout_s=timeout_s,
            describe=f"{self.name} (port {self.port}) to be registered and listening",
            watch=[self],
        )


class KafkaCluster(Startable):
    """Several brokers of one version, with ids 1, 2, ...; they are started at the same time.

    `racks` are handed out in turn. The other arguments are those of `KafkaBroker`.
    """

    def __init__(
        self,
        *,
        zookeeper: str,
        brokers: int = 3,
        version: str = DEFAULT_VERSION,
        inter_broker_protocol_version: str | None = None,
        racks: Sequence[str] = (),
        session_timeout_ms: int = SESSION_TIMEOUT_MS,
        internal_replication_factor: int | None = None,
        config: Config | None = None,
        log_levels: Mapping[str, str] | None = None,
        heap_mb: int = 384,
        java_options: Sequence[str] = TUNED_FOR_QUICK_START,
        log_directories: int = 1,
        keep_state: bool = False,
    ) -> None:
        self.version = version
        self.zookeeper = zookeeper
        self.brokers = [
            KafkaBroker(
                zookeeper=zookeeper,
                version=version,
                broker_id=broker_id,
                inter_broker_protocol_version=inter_broker_protocol_version,
                rack=racks[(broker_id - 1) % len(racks)] if racks else None,
                session_timeout_ms=session_timeout_ms,
                internal_replication_factor=internal_replication_factor or min(brokers, 3),
                config=config,
                log_levels=log_levels,
                heap_mb=heap_mb,
                java_options=java_options,
                log_directories=log_directories,
                keep_state=keep_state,
            )
            for broker_id in range(1, brokers + 1)
        ]

    @property
    def bootstrap_servers(self) -> str:
        """All brokers, running or not."""
        return ",".join(broker.bootstrap_servers for broker in self.brokers)

    def broker(self, broker_id: int) -> KafkaBroker:
        """The broker with this id.

        Raises:
            LookupError: there is none.
        """
        for broker in self.brokers:
            if broker.broker_id == broker_id:
                return broker
        raise LookupError(f"the cluster has no broker {broker_id}")

    def launch(self) -> None:
        """Start the brokers that do not run, without waiting for them."""
        for broker in self.brokers:
            if not broker.is_running:
                broker.launch()

    def start(self) -> None:
        """Start the brokers that do not run and wait until all are ready."""
        for broker in self.brokers:
            if not broker.is_running:
                broker.wait_for_old_registration()
        with start_permit():
            self.launch()
            self.wait_until_ready()

    def wait_until_ready(self, *, timeout_s: float = START_TIMEOUT_S) -> None:
        """Wait until every broker is registered and accepts connections."""
        deadline = time.monotonic() + timeout_s
        for broker in self.brokers:
            broker.wait_until_ready(timeout_s=max(deadline - time.monotonic(), 1.0))

    def stop(self) -> None:
        """Stop all brokers in an orderly way, at the same time."""
        stop_all(self.brokers)

    def close(self) -> None:
        """Kill the brokers, remove their data, give their ports back."""
        close_all(self.brokers)


def _name(version: str, broker_id: int) -> str:
    return f"kafka-{version}-broker-{broker_id}"


def _jars_with_zookeeper(version: str) -> KafkaJars:
    """The jars of a version that has a ZooKeeper mode.

    Raises:
        VersionError: it has none.
    """
    if version_tuple(version) >= _FIRST_WITHOUT_ZOOKEEPER:
        raise VersionError(f"Kafka {version} has no ZooKeeper mode; 3.9 was the last with it")
    return kafka_jars(version)

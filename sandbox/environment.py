"""Everything at once: a Kubernetes API, ZooKeeper and a Kafka cluster."""

from collections.abc import Mapping, Sequence

from sandbox.kafka import SESSION_TIMEOUT_MS, Config, KafkaCluster
from sandbox.kafka_jars import DEFAULT_VERSION, kafka_jars
from sandbox.kubernetes_api import KubernetesApi
from sandbox.kubernetes_binaries import kubernetes_binaries
from sandbox.process import ManagedProcess
from sandbox.server import Startable, close_all
from sandbox.zookeeper import ZooKeeper, ZooKeeperEnsemble


class Environment(Startable):
    """A Kubernetes API, ZooKeeper (an ensemble when `zookeeper_servers` > 1) and brokers.

    Its parts are `kubernetes` (None when it was not asked for), `zookeeper` and `kafka`.
    ZooKeeper is the one of Kafka 3.9.1, whatever the brokers' version is, because Regent's
    bulk reads need ZooKeeper 3.6.
    """

    def __init__(
        self,
        *,
        brokers: int = 3,
        kafka_version: str = DEFAULT_VERSION,
        inter_broker_protocol_version: str | None = None,
        racks: Sequence[str] = (),
        session_timeout_ms: int = SESSION_TIMEOUT_MS,
        kafka_config: Config | None = None,
        zookeeper_servers: int = 1,
        chroot: str = "",
        kubernetes: bool = True,
        controller_manager: bool = False,
        users: Mapping[str, Sequence[str]] | None = None,
        keep_state: bool = False,
    ) -> None:
        for version in (kafka_version, DEFAULT_VERSION):  # fetch all before anything is created
            kafka_jars(version)
        if kubernetes:
            kubernetes_binaries()
        self.zookeeper: ZooKeeper | ZooKeeperEnsemble = (
            ZooKeeper(keep_state=keep_state)
            if zookeeper_servers == 1
            else ZooKeeperEnsemble(zookeeper_servers, keep_state=keep_state)
        )
        self.zookeeper_connect = self.zookeeper.connect_string + chroot
        self.kafka = KafkaCluster(
            zookeeper=self.zookeeper_connect,
            brokers=brokers,
            version=kafka_version,
            inter_broker_protocol_version=inter_broker_protocol_version,
            racks=racks,
            session_timeout_ms=session_timeout_ms,
            config=kafka_config,
            keep_state=keep_state,
        )
        self.kubernetes = (
            KubernetesApi(users=users, controller_manager=controller_manager, keep_state=keep_state)
            if kubernetes
            else None
        )

    @property
    def parts(self) -> list[Startable]:
        """What it consists of, in an order in which it can be started."""
        optional: list[Startable] = [] if self.kubernetes is None else [self.kubernetes]
        return [self.zookeeper, self.kafka, *optional]

    @property
    def processes(self) -> list[ManagedProcess]:
        """Every process of every part."""
        zookeeper = self.zookeeper
        servers = [zookeeper] if isinstance(zookeeper, ZooKeeper) else zookeeper.servers
        return [
            *(server.process for server in servers),
            *(broker.process for broker in self.kafka.brokers),
            *(self.kubernetes.processes if self.kubernetes is not None else []),
        ]

    def start(self) -> None:
        """Start everything; the brokers come up while the Kubernetes API does."""
        self.zookeeper.start()
        self.kafka.launch()
        if self.kubernetes is not None:
            self.kubernetes.start()
        self.kafka.wait_until_ready()

    def stop(self) -> None:
        """Stop everything in an orderly way, brokers before ZooKeeper."""
        for part in reversed(self.parts):
            part.stop()

    def close(self) -> None:
        """Kill everything, remove the data, give the ports back."""
        close_all(self.parts)

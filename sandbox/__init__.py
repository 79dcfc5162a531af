"""The real environment on one machine: ZooKeeper, Kafka brokers and a Kubernetes API.

Nothing here is a fake: the servers are the published ones, started as ordinary processes on
loopback, and they are gone when the Python that started them is, however it ends. Tests,
benchmarks and the demo use the classes below; people use `python -m sandbox`.

    from sandbox import KafkaCluster, KafkaTools, KubernetesApi, ZooKeeper

    with ZooKeeper() as zookeeper:
        with KafkaCluster(zookeeper=zookeeper.connect_string, brokers=3) as kafka:
            KafkaTools(kafka.bootstrap_servers).create_topic("t", replication_factor=3)

The environment is Linux only.
"""

from sandbox.environment import Environment
from sandbox.errors import ProcessDiedError, SandboxError, WaitError, WaitTimeoutError
from sandbox.kafka import KafkaBroker, KafkaCluster
from sandbox.kafka_jars import DEFAULT_VERSION, TESTED_VERSIONS
from sandbox.kubernetes_api import KubernetesApi
from sandbox.process import ManagedProcess
from sandbox.tools import KafkaTools
from sandbox.waiting import wait_until, wait_until_async
from sandbox.zookeeper import ZooKeeper, ZooKeeperEnsemble

__all__ = [
    "DEFAULT_VERSION",
    "TESTED_VERSIONS",
    "Environment",
    "KafkaBroker",
    "KafkaCluster",
    "KafkaTools",
    "KubernetesApi",
    "ManagedProcess",
    "ProcessDiedError",
    "SandboxError",
    "WaitError",
    "WaitTimeoutError",
    "ZooKeeper",
    "ZooKeeperEnsemble",
    "wait_until",
    "wait_until_async",
]

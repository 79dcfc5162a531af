"""Makes the archives of loaded classes: a broker is started, used, and stopped."""

from pathlib import Path

from sandbox.caching import cached
from sandbox.class_data import FILE_NAME, class_data_entry
from sandbox.java import TUNED_FOR_QUICK_START
from sandbox.kafka import KafkaBroker
from sandbox.kafka_jars import kafka_jars
from sandbox.progress import note
from sandbox.tools import KafkaTools
from sandbox.zookeeper import ZooKeeper


def class_data(version: str) -> Path:
    """The archive of a Kafka version, recorded when it is not in the cache.

    Raises:
        WaitTimeoutError: a server does not start.
    """
    return cached(class_data_entry(kafka_jars(version)), lambda path: _record(version, path))


def _record(version: str, directory: Path) -> None:
    note(f"recording the classes of Kafka {version} (typically a quarter of a minute)")
    archive = directory / FILE_NAME
    options = (*TUNED_FOR_QUICK_START, f"-XX:ArchiveClassesAtExit={archive}")
    with (
        ZooKeeper(version=version) as zookeeper,
        KafkaBroker(
            zookeeper=zookeeper.connect_string, version=version, java_options=options
        ) as broker,
    ):
        tools = KafkaTools(
            broker.bootstrap_servers, version=version, zookeeper=zookeeper.connect_string
        )
        tools.create_topic("recorded")
        tools.produce("recorded", ["a record"])
        tools.consume("recorded", 1)
        broker.stop()

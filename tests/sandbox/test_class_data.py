"""Java programs take their classes from an archive where that helps, and where there is one."""

import subprocess
from pathlib import Path

import pytest

from sandbox.caching import DIRECTORY_VARIABLE, cache_directory
from sandbox.class_data import FILE_NAME, class_data_entry, class_data_options
from sandbox.class_data_recording import class_data
from sandbox.java import TUNED_FOR_QUICK_START, TUNED_FOR_THROUGHPUT, java_command
from sandbox.kafka_jars import KafkaJars, kafka_jars
from tests.support.soak import soak


@pytest.fixture
def jars(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> KafkaJars:
    """A version whose archive exists."""
    monkeypatch.setenv(DIRECTORY_VARIABLE, str(tmp_path / "cache"))
    (tmp_path / "kafka-clients.jar").touch()
    jars = KafkaJars("3.9.1", tmp_path)
    entry = cache_directory() / class_data_entry(jars)
    entry.mkdir(parents=True)
    (entry / FILE_NAME).touch()
    return jars


def options_of(jars: KafkaJars, *options: str) -> list[str]:
    """The archive that a program with these options takes its classes from."""
    command = java_command(
        jars, "kafka.Kafka", heap_mb=64, log_configuration=Path("/log4j"), options=options
    )
    return [option for option in command if option.startswith("-XX:SharedArchiveFile=")]


def test_what_is_to_start_quickly_uses_the_archive(jars: KafkaJars) -> None:
    archive = cache_directory() / class_data_entry(jars) / FILE_NAME
    expected = [f"-XX:SharedArchiveFile={archive}"]
    assert options_of(jars, *TUNED_FOR_QUICK_START) == expected
    assert options_of(jars, *TUNED_FOR_QUICK_START, "-Dmore=yes") == expected


def test_benchmarks_and_recordings_do_not(jars: KafkaJars) -> None:
    assert options_of(jars, *TUNED_FOR_THROUGHPUT) == []
    assert options_of(jars, *TUNED_FOR_QUICK_START, "-XX:ArchiveClassesAtExit=/x") == []


def test_other_jars_have_another_archive(jars: KafkaJars, tmp_path: Path) -> None:
    (tmp_path / "zookeeper.jar").touch()
    assert class_data_options(jars) == ()


@soak("sandbox")
@pytest.mark.integration
@pytest.mark.slow
def test_java_finds_a_broker_in_the_archive() -> None:
    class_data("3.9.1")
    command = java_command(
        kafka_jars("3.9.1"), "kafka.Kafka", heap_mb=64, log_configuration=Path("/log4j")
    )
    command.insert(1, "-Xlog:class+load")
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    (loaded,) = (line for line in done.stdout.splitlines() if " kafka.Kafka source:" in line)
    assert "shared objects file" in loaded, loaded

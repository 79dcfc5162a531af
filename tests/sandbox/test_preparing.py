"""What happens before anything starts: programs, builds, jars, and their messages."""

import shutil
import sys
from pathlib import Path

import pytest

from sandbox import kafka_jars, kubernetes_binaries
from sandbox.caching import DIRECTORY_VARIABLE, cache_directory
from sandbox.errors import MissingProgramError, StepError, VersionError
from sandbox.kafka import KafkaBroker
from sandbox.kafka_jars import KafkaJars, find_kafka_jars, version_tuple
from sandbox.kubernetes_binaries import API_BUILD, NODE_BUILD
from sandbox.programs import Program, find, require
from sandbox.progress import run_step


def program(tmp_path: Path, *, version: str | None) -> Program:
    """A program of the machine that tells the version; absent when that is None."""
    if version is not None:
        path = tmp_path / "compiler"
        path.write_text(f"#!/bin/sh\necho compiler release {version}\n")
        path.chmod(0o755)
    return Program(
        name="compiler",
        version_min=(1, 24),
        version_arguments=("--version",),
        version_pattern=r"release (\d+(?:\.\d+)*)",
        needed_for="building things",
        how_to_get="it from your system",
    )


@pytest.fixture(autouse=True)
def own_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    find.cache_clear()


@pytest.mark.parametrize(
    ("version", "message"),
    [
        (None, r"^compiler: not found; 1\.24 or newer is needed for building .* from your system"),
        ("1.9.2", r"1\.9\.2 at .*; 1\.24 or newer is needed"),
        ("unknown", "does not tell its version"),
    ],
)
def test_unsuitable_program_is_named(tmp_path: Path, version: str | None, message: str) -> None:
    with pytest.raises(MissingProgramError, match=message):
        require(program(tmp_path, version=version))


def test_program_that_is_new_enough_passes(tmp_path: Path) -> None:
    require(program(tmp_path, version="1.24"))


def test_a_step_that_fails_shows_the_end_of_its_output(tmp_path: Path) -> None:
    source = "import sys; print('cannot resolve'); sys.exit(4)"
    with pytest.raises(StepError, match=r"(?s)fetching failed \(exit status 4\).*cannot resolve"):
        run_step("fetching", [sys.executable, "-c", source], directory=tmp_path)


def test_changed_source_makes_another_cache_entry_of_its_programs_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = shutil.copytree(kubernetes_binaries.MODULE_DIRECTORY, tmp_path / "module")
    monkeypatch.setattr(kubernetes_binaries, "MODULE_DIRECTORY", module)
    api, node = API_BUILD.entry_name, NODE_BUILD.entry_name
    (module / "coredns" / "main.go").write_text("// changed\n")
    assert API_BUILD.entry_name == api
    assert NODE_BUILD.entry_name != node
    (module / "kube" / "main.go").write_text("// changed\n")
    assert API_BUILD.entry_name != api


def test_versions_are_compared_by_number() -> None:
    assert version_tuple("2.10.1") > version_tuple("2.9.9")


def test_a_kafka_without_zookeeper_mode_is_refused() -> None:
    with pytest.raises(VersionError, match=r"Kafka 4\.0\.0 has no ZooKeeper mode"):
        KafkaBroker(zookeeper="127.0.0.1:1", version="4.0.0")


def test_kafka_streams_is_not_taken_for_the_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(DIRECTORY_VARIABLE, str(tmp_path / "cache"))
    streams, server = kafka_jars._streams("3.9.1"), kafka_jars._server("3.9.1")
    (cache_directory() / streams.entry_name).mkdir(parents=True)
    assert find_kafka_jars("3.9.1") is None
    (cache_directory() / server.entry_name).mkdir(parents=True)
    assert find_kafka_jars("3.9.1") == KafkaJars("3.9.1", cache_directory() / server.entry_name)

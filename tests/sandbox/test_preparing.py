"""What happens before anything starts: programs, builds, jars, and their messages."""

import re
import shutil
import sys
from pathlib import Path

import pytest

from sandbox import kafka_jars, kubernetes_binaries, progress
from sandbox.caching import DIRECTORY_VARIABLE, cache_directory
from sandbox.errors import MissingProgramError, StepError, VersionError
from sandbox.java import write_log_configuration
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


def test_a_missing_program_is_named_with_purpose_and_cure(tmp_path: Path) -> None:
    with pytest.raises(MissingProgramError) as failure:
        require(program(tmp_path, version=None))
    assert str(failure.value) == (
        "compiler: not found; 1.24 or newer is needed for building things. Get it from your system."
    )


def test_a_program_that_is_too_old_is_named_with_both_versions(tmp_path: Path) -> None:
    with pytest.raises(MissingProgramError, match=r"1\.9\.2 at .*; 1\.24 or newer is needed"):
        require(program(tmp_path, version="1.9.2"))


def test_a_program_that_does_not_tell_its_version_is_not_trusted(tmp_path: Path) -> None:
    with pytest.raises(MissingProgramError, match="does not tell its version"):
        require(program(tmp_path, version="unknown"))


def test_a_program_that_is_new_enough_passes(tmp_path: Path) -> None:
    require(program(tmp_path, version="1.24"))


def test_a_step_that_fails_shows_the_end_of_its_output(tmp_path: Path) -> None:
    source = "import sys; print('cannot resolve'); sys.exit(4)"
    with pytest.raises(StepError, match=r"(?s)fetching failed \(exit status 4\).*cannot resolve"):
        run_step("fetching", [sys.executable, "-c", source], directory=tmp_path)


def test_a_long_step_tells_what_it_does_and_for_how_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(progress, "LINE_EVERY_S", 0.2)
    note, shown = progress.note, tmp_path / "shown"

    def note_and_end(text: str) -> None:
        note(text)
        if text.endswith(": half way"):
            shown.touch()

    monkeypatch.setattr(progress, "note", note_and_end)
    script = f"echo half way; while [ ! -e {shown} ]; do sleep 0.05; done"
    run_step("building", ["/bin/sh", "-c", script], directory=tmp_path, typically="a second")
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "[sandbox] building (typically a second)"
    assert [line for line in lines if re.fullmatch(r"\[sandbox\] building, \d+ s: half way", line)]
    assert lines[-1].startswith("[sandbox] building: done in ")


def test_the_kubernetes_programs_know_their_versions() -> None:
    flags = kubernetes_binaries._linker_flags()
    assert "-X k8s.io/component-base/version.gitVersion=v1." in flags
    assert "-X helm.sh/helm/v3/internal/version.version=v3." in flags


@pytest.fixture
def copied_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The Go module, to be changed."""
    shutil.copytree(kubernetes_binaries.MODULE_DIRECTORY, tmp_path / "module")
    monkeypatch.setattr(kubernetes_binaries, "MODULE_DIRECTORY", tmp_path / "module")
    return tmp_path / "module"


def append(path: Path) -> None:
    with path.open("a") as file:
        file.write("// changed\n")


def test_a_changed_source_file_makes_another_cache_entry(copied_module: Path) -> None:
    before = API_BUILD.entry_name
    append(copied_module / "kube" / "main.go")
    assert API_BUILD.entry_name != before


def test_those_who_need_no_node_build_nothing_when_its_sources_change(copied_module: Path) -> None:
    api, node = API_BUILD.entry_name, NODE_BUILD.entry_name
    append(copied_module / "coredns" / "main.go")
    assert API_BUILD.entry_name == api
    assert NODE_BUILD.entry_name != node


def test_versions_are_compared_by_number() -> None:
    assert version_tuple("2.10.1") > version_tuple("2.9.9")
    with pytest.raises(VersionError, match="not a Kafka version: 'trunk'"):
        version_tuple("trunk")


def test_a_kafka_without_zookeeper_mode_is_refused() -> None:
    with pytest.raises(VersionError, match=r"Kafka 4\.0\.0 has no ZooKeeper mode"):
        KafkaBroker(zookeeper="127.0.0.1:1", version="4.0.0")


def test_the_class_path_has_a_fixed_order(tmp_path: Path) -> None:
    for name in ("b.jar", "a.jar", "pom.xml"):
        (tmp_path / name).touch()
    assert KafkaJars("3.9.1", tmp_path).class_path == f"{tmp_path}/a.jar:{tmp_path}/b.jar"


def test_kafka_streams_is_not_taken_for_the_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(DIRECTORY_VARIABLE, str(tmp_path / "cache"))
    streams, server = kafka_jars._streams("3.9.1"), kafka_jars._server("3.9.1")
    (cache_directory() / streams.entry_name).mkdir(parents=True)
    assert find_kafka_jars("3.9.1") is None
    (cache_directory() / server.entry_name).mkdir(parents=True)
    assert find_kafka_jars("3.9.1") == KafkaJars("3.9.1", cache_directory() / server.entry_name)


def test_kafka_streams_comes_with_the_applications_of_its_tests() -> None:
    library, applications = kafka_jars._streams("3.9.1").artifacts
    assert "<classifier>" not in library.dependency
    assert (
        "<version>3.9.1</version>\n      <classifier>test</classifier>" in applications.dependency
    )


def test_log_levels_can_be_set_per_logger(tmp_path: Path) -> None:
    path = tmp_path / "log4j.properties"
    write_log_configuration(path, stream="err", level="WARN", levels={"kafka.controller": "TRACE"})
    text = path.read_text()
    assert "log4j.rootLogger=WARN, console\n" in text
    assert "console.target=System.err\n" in text
    assert "log4j.logger.kafka.controller=TRACE\n" in text

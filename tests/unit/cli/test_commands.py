"""The command line, as far as it needs no servers."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from click.testing import CliRunner

from regent.cli import main
from regent.model.partition import ReplicaAssignment
from regent.reconcile.topics.exporting import export_topic
from regent.settings import Settings
from regent.status import reader
from regent.status.topic_export import Export

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def runner(monkeypatch: pytest.MonkeyPatch) -> CliRunner:
    monkeypatch.delenv("REGENT_ZOOKEEPER", raising=False)
    return CliRunner()


def test_every_setting_is_an_option_of_run(runner: CliRunner) -> None:
    output = runner.invoke(main, ["run", "--help"]).output
    for name in Settings.model_fields:
        option = "--namespace" if name == "namespaces" else f"--{name.replace('_', '-')}"
        assert option in output


def test_run_without_zookeeper_says_what_to_do(runner: CliRunner) -> None:
    result = runner.invoke(main, ["run"])
    assert result.exit_code == 1
    assert "--zookeeper HOST:PORT" in result.output
    assert "Traceback" not in result.output


def test_run_refuses_a_malformed_connect_string(runner: CliRunner) -> None:
    result = runner.invoke(main, ["run", "--zookeeper", "host:port", "--http-port", "0"])
    assert result.exit_code == 1
    assert "host:port" in result.output


@pytest.mark.parametrize("command", ["status", "why"])
def test_what_reads_a_cluster_has_the_options_of_run_that_reach_zookeeper(
    runner: CliRunner, command: str
) -> None:
    output = runner.invoke(main, [command, "--help"]).output
    names = [name for name in Settings.model_fields if name.startswith("zookeeper")]
    assert [n for n in names if f"--{n.replace('_', '-')}" not in output] == []
    assert "--config" in output


@pytest.mark.parametrize("command", [["status"], ["why", "t"]])
@pytest.mark.parametrize("url", ["ftp://host", "file:///etc/passwd", "127.0.0.1:8080"])
def test_a_regent_is_asked_over_http_only(runner: CliRunner, url: str, command: list[str]) -> None:
    result = runner.invoke(main, [*command, "--zookeeper", "z:1", "--url", url])
    assert result.exit_code == 2
    assert "must begin with http:// or https://" in result.output


@pytest.mark.parametrize("url", ["http://", "http://:80", "http://host:99999", "http://[::1"])
def test_a_url_without_a_host_or_with_a_port_that_is_none_is_refused(
    runner: CliRunner, url: str
) -> None:
    result = runner.invoke(main, ["status", "--zookeeper", "localhost:1", "--url", url])
    assert result.exit_code == 2
    assert "has no host, or a port that is none" in result.output


@pytest.mark.parametrize("command", [["run"], ["status"], ["why", "t"]])
def test_a_binary_settings_file_is_named(
    runner: CliRunner, tmp_path: Path, command: list[str]
) -> None:
    file = tmp_path / "keystore.jks"
    file.write_bytes(b"\xfe\xed\xfe\xed")
    result = runner.invoke(main, [*command, "--config", str(file)])
    assert result.exit_code == 1
    assert "keystore.jks is not text in UTF-8" in result.output
    assert isinstance(result.exception, SystemExit)


@pytest.mark.parametrize("partition", ["-1", "x", "1.5"])
def test_why_takes_the_number_of_a_partition(runner: CliRunner, partition: str) -> None:
    result = runner.invoke(main, ["why", "t", "--zookeeper", "z:1", "--partition", partition])
    assert result.exit_code == 2
    assert "--partition" in result.output


def test_export_refuses_what_is_no_namespace(runner: CliRunner) -> None:
    result = runner.invoke(main, ["export", "topics", "--namespace", "No_Name"])
    assert result.exit_code == 2
    assert "No_Name" in result.output


@pytest.mark.parametrize(
    ("problems", "unmatched", "status"),
    [((), (), 0), ((), ("no topic matches 'x'",), 7), (("topic y: why",), ("no topic",), 6)],
)
def test_export_says_in_its_exit_status_what_is_missing(
    runner: CliRunner,
    monkeypatch: pytest.MonkeyPatch,
    problems: tuple[str, ...],
    unmatched: tuple[str, ...],
    status: int,
) -> None:
    found = Export({}, problems, unmatched)
    monkeypatch.setattr("regent.status.topic_export.export_topics", lambda *_: found)
    result = runner.invoke(main, ["export", "topics", "--zookeeper", "127.0.0.1:1", "x"])
    assert result.exit_code == status
    assert result.stderr == "".join(f"Not exported: {each}\n" for each in (*problems, *unmatched))


def test_export_names_a_file_that_cannot_be_written_and_writes_the_others(
    runner: CliRunner, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    topics = {name: export_topic(name, {0: ReplicaAssignment((1,))}, {}) for name in "abc"}
    monkeypatch.setattr(
        "regent.status.topic_export.export_topics", lambda *_: Export(topics, (), ())
    )
    (tmp_path / "b.yaml").mkdir()
    result = runner.invoke(
        main,
        ["export", "topics", "--zookeeper", "127.0.0.1:1", "--directory", str(tmp_path)],
    )
    assert result.exit_code == 1
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_file()) == [
        "a.yaml",
        "c.yaml",
    ]
    blocked = tmp_path / "b.yaml"
    assert result.stderr == (
        f"Not exported: topic b: {blocked} cannot be written: Is a directory. Make it writable, "
        "or name another --directory\n"
    )


@pytest.mark.parametrize("deployment", ["regent", "/regent", "kafka/", "a/b/c"])
def test_release_refuses_what_is_no_deployment(runner: CliRunner, deployment: str) -> None:
    result = runner.invoke(main, ["release", "--all", "--deployment", deployment])
    assert result.exit_code == 1
    assert "is not NAMESPACE/NAME" in result.output


@pytest.mark.parametrize("namespace", ["", "team a", "Team"])
def test_release_refuses_what_is_no_namespace(runner: CliRunner, namespace: str) -> None:
    """An empty name would stand for all of them."""
    result = runner.invoke(main, ["release", "--all", "--namespace", namespace])
    assert result.exit_code == 2
    assert "is not a namespace" in result.output


def test_crds_prints_what_the_repository_holds(runner: CliRunner) -> None:
    output = runner.invoke(main, ["crds"]).output
    for file in sorted((ROOT / "crds").glob("*.yaml")):
        assert file.read_text(encoding="utf-8") in output


def test_crds_writes_files(runner: CliRunner, tmp_path: Path) -> None:
    result = runner.invoke(main, ["crds", "--directory", str(tmp_path)])
    assert result.exit_code == 0
    written = {path.name for path in tmp_path.iterdir()}
    assert written == {path.name for path in (ROOT / "crds").glob("*.yaml")}


def test_a_directory_that_cannot_be_written_is_named(runner: CliRunner, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    folder = tmp_path / "file" / "crds"
    result = runner.invoke(main, ["crds", "--directory", str(folder)])
    assert result.exit_code == 1
    assert result.output.startswith(f"Error: {folder} cannot be written: Not a directory")


def test_a_command_whose_output_nobody_reads_ends_quietly_by_sigpipe() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    try:
        ended = subprocess.run(
            [sys.executable, "-m", "regent", "crds"],
            stdout=writer,
            stderr=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": str(ROOT / "operator")},
            check=False,
        )
    finally:
        os.close(writer)
    assert (ended.returncode, ended.stderr) == (-signal.SIGPIPE, b"")


def test_a_full_disk_is_named_and_no_traceback_follows() -> None:
    with Path("/dev/full").open("wb") as full:
        ended = subprocess.run(
            [sys.executable, "-m", "regent", "settings"],
            env={**os.environ, "PYTHONPATH": str(ROOT / "operator")},
            stdout=full,
            stderr=subprocess.PIPE,
            check=False,
        )
    assert ended.returncode == 1
    assert ended.stderr.decode() == (
        "Error: the output cannot be written: No space left on device. Make room, or write it "
        "elsewhere\n"
    )


def test_settings_prints_the_documentation(runner: CliRunner) -> None:
    output = runner.invoke(main, ["settings"]).output
    assert output == (ROOT / "docs" / "settings.md").read_text(encoding="utf-8")


def test_a_server_that_is_no_zookeeper_is_named_without_a_traceback(
    runner: CliRunner, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(reader, "CONNECT_TIMEOUT_S", 1.0)
    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=_talk_nonsense, args=(server,), daemon=True).start()
        address = f"127.0.0.1:{server.getsockname()[1]}"
        try:
            result = runner.invoke(main, ["status", "--zookeeper", address])
        finally:
            server.shutdown(socket.SHUT_RDWR)  # wakes the thread
    assert result.exit_code == 3
    assert address in result.output
    assert [record for record in caplog.records if record.exc_info] == []


def _talk_nonsense(server: socket.socket) -> None:
    """What clients of ZooKeeper take for an answer that ends too early."""
    with contextlib.suppress(OSError):  # closed by the test
        while True:
            client, _ = server.accept()
            with client:
                client.recv(100)
                client.sendall(b"\xff" * 100)

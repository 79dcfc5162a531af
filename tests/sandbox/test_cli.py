"""The command line: everything up, and everything gone after a signal."""

import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from sandbox.cli import main
from sandbox.ports import can_connect
from sandbox.waiting import wait_until
from tests.support.soak import soak

REPOSITORY = Path(__file__).parents[2]


@soak("sandbox")
@pytest.mark.integration
def test_up_serves_until_a_signal_and_leaves_nothing_behind(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "sandbox", "up", "--brokers", "2", "--chroot", "/kafka"],
        cwd=REPOSITORY,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        addresses = dict(process.stdout.readline().strip().split("=", maxsplit=1) for _ in range(5))
        ports = [int(port) for port in re.findall(r"127\.0\.0\.1:(\d+)", str(addresses))]
        assert len(ports) == 3
        assert all(can_connect(port) for port in ports)
        assert addresses["ZOOKEEPER"].endswith("/kafka")
        kubectl = subprocess.run(
            [addresses["KUBECTL"], "get", "namespaces"],
            env={"KUBECONFIG": addresses["KUBECONFIG"], "HOME": str(tmp_path)},
            check=True,
            capture_output=True,
            text=True,
        )
        assert "default" in kubectl.stdout
        process.send_signal(signal.SIGTERM)
        _, messages = process.communicate(timeout=120)
    assert process.returncode == 0
    assert "SIGTERM: everything has been stopped" in messages
    assert not any(can_connect(port) for port in ports)
    started = [int(pid) for pid in re.findall(r": process (\d+), log", messages)]
    assert len(started) == 5
    assert not any(Path(f"/proc/{pid}").exists() for pid in started)
    state = [Path(path).parent for path in re.findall(r", log (\S+)", messages)]
    wait_until(
        lambda: not any(path.exists() for path in state),
        describe="the state directories to be removed",
    )


def test_doctor_names_every_program() -> None:
    outcome = CliRunner().invoke(main, ["doctor"])
    for name in ("java", "mvn", "go", "memory"):
        assert name in outcome.output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["kafka", "--zookeeper", "x", "--kafka-version", "trunk"], "not a Kafka version"),
        (["kafka", "--zookeeper", "x", "--set", "novalue"], "is not KEY=VALUE"),
    ],
)
def test_a_mistake_is_a_message_and_not_a_traceback(arguments: list[str], message: str) -> None:
    outcome = CliRunner().invoke(main, arguments)
    assert outcome.exit_code != 0
    assert message in outcome.output
    assert "Traceback" not in outcome.output

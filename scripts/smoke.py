"""A smoke test on a kept cluster: Regent leads it, serves a topic, and hands the cluster back.

    python -m scripts.smoke [--stop] [--directory .tools]

The first run starts ZooKeeper and a broker. Both go on for an hour at most, so that later runs need
some seconds only; ``--stop`` ends them.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

from sandbox import wait_until
from sandbox.kafka_jars import DEFAULT_VERSION, version_tuple
from sandbox.regent_process import RegentProcess
from sandbox.znodes import znode_exists
from tests.support.metadata import Connection
from tests.support.znodes import Znodes

ROOT: Final = Path(__file__).resolve().parent.parent

_FILE: Final = "kept-cluster"
"""Addresses of the cluster, in the directory."""
_LIFETIME_S: Final = 3600
_BROKER_ID: Final = 1
_CONTROLLER_ID: Final = 1_000_000_000


class KeptCluster(NamedTuple):
    """A ZooKeeper and a broker that run beside this process.

    Attributes:
        pid: The process that ends both when it is ended.
        zookeeper: Connect string.
        port: The port of the broker.
    """

    pid: int
    zookeeper: str
    port: int

    def is_alive(self) -> bool:
        with contextlib.suppress(OSError):
            os.kill(self.pid, 0)
            return znode_exists(self.zookeeper, f"/brokers/ids/{_BROKER_ID}")
        return False


def kept_cluster(directory: Path) -> KeptCluster:
    """Return the cluster that runs, or start one.

    Args:
        directory: Has the addresses of the cluster, and what it logs.

    Raises:
        WaitTimeoutError: it did not start in time.
    """
    file, log = directory / _FILE, directory / f"{_FILE}.log"
    found = _read(file)
    if found is not None and found.is_alive():
        return found
    directory.mkdir(exist_ok=True)
    options = ["--no-kubernetes", "--brokers=1", "--inter-broker-protocol-version=2.6"]
    command = ["timeout", str(_LIFETIME_S), sys.executable, "-m", "sandbox", "up", *options]
    with file.open("w") as addresses, log.open("w") as errors:
        process = subprocess.Popen(
            command, cwd=ROOT, stdout=addresses, stderr=errors, start_new_session=True
        )
        addresses.write(f"PID={process.pid}\n")
    return wait_until(
        lambda: _read(file),
        until=KeptCluster.is_alive,
        describe=f"the kept cluster to start, see {log}",
    )


def stop_kept_cluster(directory: Path) -> None:
    """End the cluster, if one runs."""
    file = directory / _FILE
    found = _read(file)
    if found is not None and found.is_alive():
        os.kill(found.pid, signal.SIGTERM)
        wait_until(lambda: not found.is_alive(), describe="the kept cluster to end")
    file.unlink(missing_ok=True)


def _read(file: Path) -> KeptCluster | None:
    try:
        lines = file.read_text().splitlines()
    except FileNotFoundError:
        return None
    found = dict(line.split("=", 1) for line in lines)
    if not {"PID", "ZOOKEEPER", "BOOTSTRAP_SERVERS"} <= found.keys():
        return None
    port = int(found["BOOTSTRAP_SERVERS"].rpartition(":")[2])
    return KeptCluster(int(found["PID"]), found["ZOOKEEPER"], port)


def run(cluster: KeptCluster) -> None:
    """Have Regent lead the cluster, create a topic, delete it, and hand the cluster back.

    Raises:
        WaitTimeoutError: one of these did not happen in time.
    """
    topic = f"smoke-{time.time_ns()}"
    settings = {"controller_id": _CONTROLLER_ID}
    with Znodes(cluster.zookeeper) as znodes:
        with (
            contextlib.closing(
                Connection(cluster.port, version=version_tuple(DEFAULT_VERSION))
            ) as broker,
            RegentProcess(zookeeper=cluster.zookeeper, settings=settings) as regent,
        ):
            regent.wait_until_active()
            znodes.create_topic(topic, {0: [_BROKER_ID]})
            wait_until(
                lambda: broker.metadata().partitions.get((topic, 0)),
                until=lambda partition: partition.leader == _BROKER_ID,
                describe=f"the broker to lead {topic}",
            )
            znodes.client.create(f"/admin/delete_topics/{topic}")
            wait_until(
                znodes.topics,
                until=lambda topics: topic not in topics,
                describe=f"{topic} to be deleted",
            )
        wait_until(
            znodes.controller,
            until=lambda controller: controller == _BROKER_ID,
            describe="the broker to be the controller again",
        )


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--stop", action="store_true", help="end the kept cluster")
    parser.add_argument("--directory", type=Path, default=ROOT / ".tools", help="of its addresses")
    options = parser.parse_args(arguments)
    if options.stop:
        stop_kept_cluster(options.directory)
        return 0
    began = time.monotonic()
    run(kept_cluster(options.directory))
    print(f"Regent led the kept cluster and handed it back: {time.monotonic() - began:.1f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

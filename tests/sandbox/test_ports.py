"""Ports: never two holders, never an ephemeral one, free again when the holder is gone."""

import socket
import subprocess
import sys
from pathlib import Path

from sandbox.ports import can_connect, lease_port, reserve_port
from sandbox.waiting import wait_until

REPOSITORY = Path(__file__).parents[2]

HOLD_A_PORT = """
import sys
from sandbox.ports import lease_port
lease = lease_port()
print(lease.port, flush=True)
sys.stdin.read()
"""


def test_leases_are_distinct_and_below_the_ephemeral_range() -> None:
    leases = [lease_port() for _ in range(50)]
    try:
        ports = {lease.port for lease in leases}
        assert len(ports) == len(leases)
        ephemeral_min = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
        assert max(ports) < ephemeral_min
    finally:
        for lease in leases:
            lease.release()


def test_a_leased_port_is_reserved_until_it_is_released() -> None:
    with lease_port() as lease:
        assert reserve_port(lease.port) is None
    again = reserve_port(lease.port)
    assert again is not None
    again.release()


def test_a_lease_holds_between_processes_and_ends_with_its_holder() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HOLD_A_PORT],
        cwd=REPOSITORY,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as holder:
        assert holder.stdout is not None
        port = int(holder.stdout.readline())
        assert reserve_port(port) is None
        holder.kill()
    lease = wait_until(lambda: reserve_port(port), describe=f"port {port} to be free")
    lease.release()


def test_a_port_with_somebody_elses_server_is_not_given_out() -> None:
    with lease_port() as lease:
        port = lease.port
    with socket.create_server(("127.0.0.1", port)):
        assert can_connect(port)
        assert reserve_port(port) is None

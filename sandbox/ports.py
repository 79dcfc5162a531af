"""Free loopback ports that stay free.

Asking the kernel for "any free port" and handing the number to a server is a race: until the
server binds it, any outgoing connection of the machine may get it as its local port, and so may
another sandbox. Here ports come from a range *below* the kernel's ephemeral range, so that no
outgoing connection takes one, and each is reserved by binding an abstract unix socket named
after it: the kernel makes that atomic between all processes of this network namespace (which is
just where ports are shared), and frees it when the holder ends, however it ends.
"""

import contextlib
import errno
import random
import socket
from pathlib import Path
from types import TracebackType

from sandbox.errors import NoFreePortError

_EPHEMERAL_RANGE_FILE = Path("/proc/sys/net/ipv4/ip_local_port_range")
_RANGE_SIZE = 12_000
_PORT_MIN = 10_000
LOOPBACK = "127.0.0.1"


def port_range() -> range:
    """The ports to choose from: a stretch right below the kernel's ephemeral range."""
    try:
        ephemeral_min = int(_EPHEMERAL_RANGE_FILE.read_text().split()[0])
    except (OSError, ValueError, IndexError):
        ephemeral_min = 32_768
    if ephemeral_min <= _PORT_MIN:
        # the machine gives out nearly everything as ephemeral: reserve what we can at the top
        return range(_PORT_MIN, _PORT_MIN + _RANGE_SIZE)
    return range(max(_PORT_MIN, ephemeral_min - _RANGE_SIZE), ephemeral_min)


class PortLease:
    """One loopback port that no other sandbox gets until the lease is released."""

    def __init__(self, port: int, reservation: socket.socket) -> None:
        self.port = port
        self._reservation = reservation

    def release(self) -> None:
        """Give the port back. Call it when the server on it is gone; twice is harmless."""
        self._reservation.close()

    def __enter__(self) -> "PortLease":
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.release()

    def __repr__(self) -> str:
        return f"PortLease({self.port})"


def lease_port() -> PortLease:
    """Reserve a free port.

    Raises:
        NoFreePortError: none of the range could be reserved.
    """
    candidates = port_range()
    start = random.randrange(len(candidates))  # noqa: S311  # spreads sandboxes, guards nothing
    for offset in range(len(candidates)):
        port = candidates[(start + offset) % len(candidates)]
        lease = reserve_port(port)
        if lease is not None:
            return lease
    raise NoFreePortError(f"no free port in {candidates.start}..{candidates.stop - 1}")


def reserve_port(port: int) -> PortLease | None:
    """Reserve one given port, or None when another sandbox or server has it."""
    reservation = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    with contextlib.ExitStack() as on_failure:
        on_failure.callback(reservation.close)
        try:
            reservation.bind(f"\0regent-sandbox-port-{port}")
        except OSError:
            return None
        if not _can_be_bound(port):
            return None
        on_failure.pop_all()
    return PortLease(port, reservation)


def _can_be_bound(port: int) -> bool:
    """No server listens there: neither on loopback nor on all addresses, of either family."""
    for family, address in ((socket.AF_INET, "0.0.0.0"), (socket.AF_INET6, "::")):  # noqa: S104
        try:
            probe = socket.socket(family, socket.SOCK_STREAM)
        except OSError:
            continue  # no such address family on this machine
        with probe:
            try:
                probe.bind((address, port))
            except OSError as error:
                if family is socket.AF_INET6 and error.errno == errno.EADDRNOTAVAIL:
                    continue
                return False
    return True


def can_connect(port: int, *, host: str = LOOPBACK, timeout_s: float = 1.0) -> bool:
    """Something accepts connections there."""
    try:
        with socket.create_connection((host, port), timeout=timeout_s):
            return True
    except OSError:
        return False

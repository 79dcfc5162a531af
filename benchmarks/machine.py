"""What the figures were measured on, and what processes have cost."""

import os
import platform
import shutil
import subprocess
import time
import timeit
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Protocol

_TICKS = os.sysconf("SC_CLK_TCK")
_MUCH = 0.3  # of the processors, used by others
_DICTIONARY_WRITES = 1_000_000


def cpu_seconds(pid: int) -> float:
    """Processor time that a process has used, all its threads together."""
    stat = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(stat[11]) + int(stat[12])) / _TICKS


def peak_memory_mb(pid: int) -> float:
    """The most memory that a process has had resident since it was started."""
    return _status_kb(pid, "VmHWM") / 1024


def resident_bytes(pid: int) -> int:
    """Memory that a process has resident now."""
    return _status_kb(pid, "VmRSS") * 1024


def _status_kb(pid: int, name: str) -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1])
    return 0


def cores() -> int:
    """Processors that this process may use."""
    return len(os.sched_getaffinity(0))


def busy_seconds() -> float:
    """Processor time that everything on this machine has used since it was started."""
    numbers = [int(n) for n in Path("/proc/stat").read_text().splitlines()[0].split()[1:]]
    user, nice, system, _idle, _iowait, irq, softirq, *_ = numbers
    return (user + nice + system + irq + softirq) / _TICKS


def wait_until_idle(*, busy_share: float, timeout_s: float) -> None:
    """Wait for a second in which the processors had little to do; give up after a while.

    Whoever shares a machine gets better figures this way, and never waits forever.
    """
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        before = busy_seconds()
        time.sleep(1)
        if busy_seconds() - before <= busy_share * cores():
            return


class Measured(Protocol):
    """A measurement: how long it took, and what processes used meanwhile ("others": those that
    have nothing to do with it), both in seconds."""

    @property
    def cpu(self) -> Mapping[str, float]: ...

    @property
    def window_s(self) -> float: ...


def disturbance(what: str, measurements: Iterable[Measured]) -> str:
    """How much else the machine did while something was measured."""
    some = list(measurements)
    share = sum(m.cpu["others"] for m in some) / (sum(m.window_s for m in some) * cores())
    rough = " That is much: these figures are rough." if share > _MUCH else ""
    return f"Other processes used {share:.0%} of the processors while {what} was measured.{rough}"


def facts() -> dict[str, str]:
    """Processor, cores, memory, load, versions."""
    return {
        "processor": _processor(),
        "cores": str(cores()),
        "memory": f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 2**30:.0f} GiB",
        "load before": " ".join(f"{load:.2f}" for load in os.getloadavg()),
        "kernel": platform.release(),
        "Python": f"{platform.python_version()} ({_python_speed()})",
        "Java": _java_version(),
    }


def _python_speed() -> str:
    """Millions of dictionary writes a second, by this interpreter on this machine.

    The same Python version runs at half the speed on another machine, or when it was compiled
    without a profile; no setting of the build tells reliably.
    """
    fastest = min(timeit.repeat(_write_dictionary, number=1, repeat=5))
    return f"{_DICTIONARY_WRITES / fastest / 1e6:.1f} million dictionary writes a second"


def _write_dictionary() -> None:
    table: dict[int, tuple[int, int]] = {}
    for number in range(_DICTIONARY_WRITES):
        table[number % 1000] = (number, 0)


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def _java_version() -> str:
    java = shutil.which("java")
    if java is None:
        return "none"
    result = subprocess.run([java, "-version"], capture_output=True, text=True, check=False)
    lines = result.stderr.splitlines()
    return lines[0] if lines else "unknown"

"""KafkaTopics: many are created at once, and then nothing happens for a minute.

Regent alone, with everything that it has in production: a real API server, a real ZooKeeper, stub
brokers. The clock starts with the first creation, and stops when a watch has shown that all are
Ready. What Regent costs while nothing changes is measured afterwards.
"""

import asyncio
import contextlib
import math
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from rich.console import Console

from benchmarks import machine
from benchmarks.arena import Arena, arena_of
from benchmarks.benchmark import REGENT, Benchmark, Options, Result, Table
from benchmarks.cluster import Cluster
from benchmarks.contenders import REGENT_CONTROLLER_ID, SESSION_TIMEOUT_MS
from benchmarks.errors import BenchmarkError
from benchmarks.kube_topics import NAMESPACE, KubeTopics, await_condition
from regent.model.partition import TopicPartition
from regent.zk_data import paths
from sandbox import KubernetesApi
from sandbox.regent_process import RegentProcess
from sandbox.zookeeper import four_letter_word

QUIET_S = 60.0
"""How long nothing happens."""
SETTLED_AFTER_S = 15.0
"""Details of statuses are written ten seconds later at most."""

_ROOT = Path(__file__).resolve().parent.parent
_USER = "regent"
_SHARES = (0.5, 0.99, 1.0)


class _Minute(NamedTuple):
    """A time in which nothing happened.

    Attributes:
        cpu: Share of a core that each process used.
        writes: To KafkaTopics.
        transactions: Of ZooKeeper.
        began_s: Seconds after the start of the measurement.
    """

    cpu: Mapping[str, float]
    writes: int
    transactions: int
    began_s: float


class _Converged(NamedTuple):
    """What became of the KafkaTopics; seconds after the first creation, processor seconds.

    Attributes:
        ready_s: When a share of them was Ready.
        writes: To KafkaTopics, their creation among them.
    """

    created_s: float
    ready_s: Mapping[float, float]
    cpu: Mapping[str, float]
    writes: int


class _Stage:
    """The processes, and what they have used."""

    def __init__(self, arena: Arena, api: KubernetesApi, regent: RegentProcess) -> None:
        self.arena = arena
        self.api = api
        self.regent = regent

    def cpu(self) -> dict[str, float]:
        """Processor seconds so far."""
        return {
            "Regent": machine.cpu_seconds(self.regent.process.pid),
            "API server": machine.cpu_seconds(self.api.api_server.pid),
            "etcd": machine.cpu_seconds(self.api.etcd.pid),
            "ZooKeeper": machine.cpu_seconds(self.arena.zookeeper.process.pid),
            "stub brokers": machine.cpu_seconds(self.arena.stubs.pid),
            "benchmark": time.process_time(),
        }

    def transaction(self) -> int:
        """ZooKeeper's last transaction; pings are none."""
        answer = four_letter_word(self.arena.zookeeper.port, "srvr")
        (zxid,) = (line for line in answer.splitlines() if line.startswith("Zxid: "))
        return int(zxid.removeprefix("Zxid: "), 16)


async def _measure(
    stage: _Stage, names: list[str], options: Options, console: Console
) -> tuple[_Converged, _Minute]:
    """Create all, wait until all are Ready, wait until nothing is written, and then a minute."""
    async with KubeTopics(stage.api) as topics, topics.watching() as watch:
        seen = topics.seen
        before, began = stage.cpu(), time.monotonic()
        await topics.create(names)
        created_s = time.monotonic() - began
        await await_condition(
            lambda: len(seen.ready_at) == len(names),
            watch,
            what=f"not all of {len(names)} KafkaTopics are Ready",
            timeout_s=max(options.timeout_s - created_s, 0.0),
        )
        times = [at - began for at in seen.ready_at.values()]
        converged = _Converged(
            created_s,
            {share: times[math.ceil(share * len(times)) - 1] for share in _SHARES},
            _used(before, stage.cpu()),
            seen.events,
        )
        console.print(f"all Ready after {converged.ready_s[1.0]:.1f} s; waiting for quiet")
        await await_condition(
            lambda: time.monotonic() - seen.last_event_at >= SETTLED_AFTER_S,
            watch,
            what="statuses are still being written",
            timeout_s=options.timeout_s,
        )
        # One for each, that its topic was created. Regent sends them when no resource waits.
        await topics.await_events(len(names), timeout_s=options.timeout_s)
        cpu, events, transaction = stage.cpu(), seen.events, stage.transaction()
        quiet_began = time.monotonic()
        await asyncio.wait({watch}, timeout=QUIET_S)
        if watch.done():
            await watch
        elapsed = time.monotonic() - quiet_began
        minute = _Minute(
            {name: used / elapsed for name, used in _used(cpu, stage.cpu()).items()},
            seen.events - events,
            stage.transaction() - transaction,
            quiet_began - began,
        )
        if lost := sorted(set(names) - seen.ready_at.keys()):
            raise BenchmarkError(f"{len(lost)} are not Ready any more, such as {lost[0]}")
        return converged, minute


def _used(before: Mapping[str, float], after: Mapping[str, float]) -> dict[str, float]:
    return {name: after[name] - before[name] for name in after}


def _verify(arena: Arena, names: list[str]) -> None:
    """Every topic has a leader in ZooKeeper, which is its replica, and there are no others.

    Raises:
        BenchmarkError: It is not so.
    """
    found = sorted(arena.session.children(paths.BROKER_TOPICS))
    if found != names:
        raise BenchmarkError(f"{len(found)} topics in ZooKeeper instead of {len(names)}")
    states = arena.session.states([TopicPartition(name, 0) for name in names])
    led = [s for s in states.values() if s.isr == (s.leader,) and s.leader in arena.broker_epochs]
    if len(led) != len(names):
        raise BenchmarkError(f"{len(led)} of {len(names)} topics have a leader")
    if refused := arena.stubs.status().refused:
        raise BenchmarkError(f"a broker was sent {refused[0]}")


@contextlib.contextmanager
def _stage(options: Options, console: Console) -> Iterator[_Stage]:
    with (
        arena_of(options, Cluster(0), console) as arena,
        KubernetesApi(users={_USER: []}) as api,
    ):
        api.kubectl("apply", "-f", _ROOT / "crds")
        api.kubectl("wait", "--for=condition=Established", "--timeout=60s", "-f", _ROOT / "crds")
        api.kubectl("create", "namespace", NAMESPACE)
        # The administrator would be exempt from the API server's priority and fairness.
        binding = ("--clusterrole=cluster-admin", f"--user={_USER}")
        api.kubectl("create", "clusterrolebinding", _USER, *binding)
        with RegentProcess(
            zookeeper=arena.connect_string,
            kubeconfig=api.kubeconfig_for(_USER),
            settings={
                "controller_id": REGENT_CONTROLLER_ID,
                "zookeeper_session_timeout_ms": SESSION_TIMEOUT_MS,
            },
        ) as regent:
            regent.wait_until_active()
            yield _Stage(arena, api, regent)


def run(options: Options, console: Console) -> Result:
    """Create them, and look on."""
    names = [f"topic-{number:06d}" for number in range(options.size)]
    with _stage(options, console) as stage:
        stage.arena.await_idle_machine()
        try:
            converged, minute = asyncio.run(_measure(stage, names, options, console))
            _verify(stage.arena, names)
        except BenchmarkError as error:
            tail = stage.regent.process.log_tail(lines=15)
            raise BenchmarkError(f"{error}\n--- Regent's log ---\n{tail}") from error
        memory_mb = machine.peak_memory_mb(stage.regent.process.pid)
    return _result(converged, minute, memory_mb, options.size)


def _result(converged: _Converged, minute: _Minute, memory_mb: float, size: int) -> Result:
    ready_s, idle = converged.ready_s[1.0], minute.cpu["Regent"]
    rows = [("all created", f"{converged.created_s:.1f}")]
    rows += [(f"{share:.0%} Ready", f"{at:.1f}") for share, at in converged.ready_s.items()]
    rows += [("writes to a KafkaTopic", f"{converged.writes / size:.2f}")]
    rows += [("peak memory of Regent, MB", f"{memory_mb:.0f}")]
    costs = [
        (name, f"{converged.cpu[name]:.1f}", f"{minute.cpu[name]:.2%}") for name in converged.cpu
    ]
    return Result(
        seconds={REGENT: [ready_s]},
        tables=[
            Table(f"{size:,} KafkaTopics, seconds from the first creation on", ("", ""), rows),
            Table(
                "Processor time",
                ("process", "until all were Ready, s", "of a core while nothing happened"),
                costs,
            ),
        ],
        notes=[
            f"In {QUIET_S:g} s in which nothing happened: {minute.writes} writes to KafkaTopics, "
            f"{minute.transactions} transactions of ZooKeeper. They began {minute.began_s:.0f} s "
            "after the first creation; Regent lists everything again every ten minutes.",
            "A write to a KafkaTopic is its creation, its finalizer, or a status.",
        ],
        details={
            "created_s": converged.created_s,
            "ready_s": {f"{share:.0%}": at for share, at in converged.ready_s.items()},
            "cpu_s": dict(converged.cpu),
            "writes": converged.writes,
            "idle": {
                "cpu_share": dict(minute.cpu),
                "writes": minute.writes,
                "transactions": minute.transactions,
            },
            "peak_memory_mb": memory_mb,
        },
        headline=f"{ready_s:.1f} s to Ready, {idle * 100:.2f} % of a core idle",
    )


BENCHMARK = Benchmark(
    name="kafkatopics",
    summary="From many KafkaTopics in the API server until all are Ready, and what idling costs.",
    unit="KafkaTopics of one partition",
    default_size=10_000,
    run=run,
    default_rounds=1,
    default_samples=1,
)

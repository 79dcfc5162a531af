"""KafkaTopics: many are created at once, and then nothing happens for a minute.

Regent alone, with everything that it has in production: a real API server, a real ZooKeeper, stub
brokers. The clock starts with the first creation, and stops when a watch has shown that all are
Ready. What Regent costs while nothing changes is measured afterwards; and then, beside another API
server, how long a client takes that only makes the same requests.
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
from benchmarks.arena import IDLE_SHARE, Arena, arena_of
from benchmarks.benchmark import REGENT, SIDES, Benchmark, Options, Result, Table
from benchmarks.cluster import Cluster
from benchmarks.contenders import REGENT_CONTROLLER_ID, SESSION_TIMEOUT_MS
from benchmarks.errors import BenchmarkError
from benchmarks.kube_topics import NAMESPACE, KubeTopics, Writes, await_condition
from regent.model.partition import TopicPartition
from regent.zk_data import paths
from sandbox import KubernetesApi
from sandbox.definitions import apply_definitions
from sandbox.regent_process import RegentProcess
from sandbox.zookeeper import four_letter_word

QUIET_S = 60.0
"""How long nothing happens."""
SETTLED_AFTER_S = 15.0
"""Details of statuses are written ten seconds later at most."""

_ROOT = Path(__file__).resolve().parent.parent
_USER = "regent"
BARE_CLIENT = "bare client"
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


class _BareWrites(NamedTuple):
    """What a client takes that creates the KafkaTopics and writes what Regent has written to them,
    and does nothing else.

    Attributes:
        ready_s: When all were Ready; seconds after the first creation.
        cpu: Processor seconds until then.
    """

    ready_s: float
    cpu: Mapping[str, float]


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
            **_cpu(self.api),
            "ZooKeeper": machine.cpu_seconds(self.arena.zookeeper.process.pid),
            "stub brokers": machine.cpu_seconds(self.arena.stubs.pid),
        }

    def transaction(self) -> int:
        """ZooKeeper's last transaction; pings are none."""
        answer = four_letter_word(self.arena.zookeeper.port, "srvr")
        (zxid,) = (line for line in answer.splitlines() if line.startswith("Zxid: "))
        return int(zxid.removeprefix("Zxid: "), 16)


def _cpu(api: KubernetesApi) -> dict[str, float]:
    """Processor seconds so far of an API server, its store, and whoever asks it."""
    return {
        "API server": machine.cpu_seconds(api.api_server.pid),
        "etcd": machine.cpu_seconds(api.etcd.pid),
        "benchmark": time.process_time(),
    }


async def _measure(
    stage: _Stage, names: list[str], options: Options, console: Console
) -> tuple[_Converged, _Minute, Writes]:
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
        return converged, minute, await topics.writes_to(names[-1])


async def _measure_bare_writes(
    api: KubernetesApi, names: list[str], writes: Writes, options: Options
) -> _BareWrites:
    async with KubeTopics(api) as topics, topics.watching() as watch:
        seen = topics.seen
        before, began = _cpu(api), time.monotonic()
        await topics.create_and_write(names, writes)
        await await_condition(
            lambda: len(seen.ready_at) == len(names),
            watch,
            what=f"not all of {len(names)} KafkaTopics are Ready",
            timeout_s=options.timeout_s,
        )
        ready_s = max(seen.ready_at.values()) - began
        return _BareWrites(ready_s, _used(before, _cpu(api)))


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
def _api_server() -> Iterator[KubernetesApi]:
    """An API server that knows KafkaTopics, the namespace, and a user with all rights."""
    with KubernetesApi(users={_USER: []}) as api:
        apply_definitions(api.kubectl, _ROOT / "crds")
        api.kubectl("create", "namespace", NAMESPACE)
        # The administrator would be exempt from the API server's priority and fairness.
        binding = ("--clusterrole=cluster-admin", f"--user={_USER}")
        api.kubectl("create", "clusterrolebinding", _USER, *binding)
        yield api


@contextlib.contextmanager
def _stage(options: Options, console: Console) -> Iterator[_Stage]:
    with (
        arena_of(options, Cluster(0), console) as arena,
        _api_server() as api,
        RegentProcess(
            zookeeper=arena.connect_string,
            kubeconfig=api.kubeconfig_for(_USER),
            settings={
                "controller_id": REGENT_CONTROLLER_ID,
                "zookeeper_session_timeout_ms": SESSION_TIMEOUT_MS,
            },
        ) as regent,
    ):
        regent.wait_until_active()
        yield _Stage(arena, api, regent)


def run(options: Options, console: Console) -> Result:
    """Create them, and look on."""
    names = [f"topic-{number:06d}" for number in range(options.size)]
    with _stage(options, console) as stage:
        stage.arena.await_idle_machine()
        try:
            converged, minute, writes = asyncio.run(_measure(stage, names, options, console))
            _verify(stage.arena, names)
        except BenchmarkError as error:
            tail = stage.regent.process.log_tail(lines=15)
            raise BenchmarkError(f"{error}\n--- Regent's log ---\n{tail}") from error
        memory_mb = machine.peak_memory_mb(stage.regent.process.pid)
    bare = None
    if options.sides == SIDES:
        console.print("and now a client that does nothing but write")
        with _api_server() as api:
            machine.wait_until_idle(busy_share=IDLE_SHARE, timeout_s=options.idle_timeout_s)
            bare = asyncio.run(_measure_bare_writes(api, names, writes, options))
    return _result(converged, minute, memory_mb, bare, options.size)


def _result(
    converged: _Converged,
    minute: _Minute,
    memory_mb: float,
    bare: _BareWrites | None,
    size: int,
) -> Result:
    ready_s, idle = converged.ready_s[1.0], minute.cpu["Regent"]
    bare_s = {} if bare is None else {BARE_CLIENT: [bare.ready_s]}
    bare_cpu = {} if bare is None else bare.cpu
    rows = [("all created", f"{converged.created_s:.1f}")]
    rows += [(f"{share:.0%} Ready", f"{at:.1f}") for share, at in converged.ready_s.items()]
    rows += [("writes to a KafkaTopic", f"{converged.writes / size:.2f}")]
    rows += [("peak memory of Regent, MB", f"{memory_mb:.0f}")]
    if bare is not None:
        rows += [("all Ready by a client that only writes", f"{bare.ready_s:.1f}")]
        rows += [("Regent's time by that of this client", f"{ready_s / bare.ready_s:.1f}")]
    costs = [
        (
            name,
            f"{converged.cpu[name]:.1f}",
            f"{bare_cpu[name]:.1f}" if name in bare_cpu else "",
            f"{minute.cpu[name]:.2%}",
        )
        for name in converged.cpu
    ]
    return Result(
        seconds={REGENT: [ready_s], **bare_s},
        tables=[
            Table(f"{size:,} KafkaTopics, seconds from the first creation on", ("", ""), rows),
            Table(
                "Processor time",
                (
                    "process",
                    "until all were Ready, s",
                    "by a client that only writes, s",
                    "of a core while nothing happened",
                ),
                costs,
            ),
        ],
        notes=[
            f"In {QUIET_S:g} s in which nothing happened: {minute.writes} writes to KafkaTopics, "
            f"{minute.transactions} transactions of ZooKeeper. They began {minute.began_s:.0f} s "
            "after the first creation; Regent lists everything again every ten minutes.",
            "A write to a KafkaTopic is its creation, its finalizer, or a status. The client that "
            "only writes makes these three requests for each, and no others.",
        ],
        details={
            "created_s": converged.created_s,
            "ready_s": {f"{share:.0%}": at for share, at in converged.ready_s.items()},
            "cpu_s": dict(converged.cpu),
            "bare_client": None if bare is None else bare._asdict(),
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

"""Where controllers are measured: one ZooKeeper, the stub brokers, and a session that watches."""

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping

from rich.console import Console

from benchmarks import machine
from benchmarks.benchmark import KAFKA, SIDES, Options
from benchmarks.cluster import BROKERS, CONTROLLER_EPOCH, Cluster
from benchmarks.contenders import Contender, KafkaController, RegentController
from benchmarks.errors import BenchmarkError
from benchmarks.stub.exchanges import StubStatus
from benchmarks.stub.process import StubBrokers
from benchmarks.zookeeper import Election, SetData, ZooKeeperSession
from regent.model.partition import LeaderAndIsr, TopicPartition
from regent.zk_data import paths
from regent.zk_data.topics import encode_partition_state
from sandbox import ZooKeeper, wait_until
from sandbox.java import TUNED_FOR_THROUGHPUT

CHROOT = "/kafka"
ZOOKEEPER_HEAP_MB = 2048
ZOOKEEPER_HEAP_BYTES_PER_PARTITION = 4096  # two znodes and what watches and snapshots take
SESSIONS_GONE_TIMEOUT_S = 60.0
QUIET_S = 1.0
IDLE_SHARE = 0.15  # of the processors, before a measurement
SMALLEST_ENTRY_BYTES = 40  # of a partition in UpdateMetadata


class Usage:
    """Processor seconds by process, and monotonic nanoseconds."""

    def __init__(self, cpu: dict[str, float]) -> None:
        self.at = time.monotonic_ns()
        self.cpu = cpu

    def since(self, before: "Usage") -> dict[str, float]:
        """What was used meanwhile; "others" have nothing to do with the measurement."""
        used = {name: self.cpu[name] - before.cpu.get(name, 0.0) for name in self.cpu}
        used["others"] = max(used.pop("machine") - sum(used.values()), 0.0)
        return used


class Arena:
    """ZooKeeper, the stub brokers and the session that watches.

    Attributes:
        broker_epochs: Of the stub brokers that are registered, once `prepare` has been called.
    """

    def __init__(
        self, options: Options, cluster: Cluster, zookeeper: ZooKeeper, *, has_followers: bool
    ) -> None:
        self.options = options
        self.cluster = cluster
        self.zookeeper = zookeeper
        self.connect_string = zookeeper.connect_string + CHROOT
        self.stubs = StubBrokers(
            cluster.broker_ids,
            config={"inter.broker.protocol.version": cluster.protocol_version},
            zookeeper=self.connect_string if has_followers else None,
        )
        self.session = ZooKeeperSession(self.connect_string)
        self.broker_epochs: dict[int, int] = {}

    def prepare(self) -> int:
        """Fill ZooKeeper and register the stub brokers; returns the number of znodes."""
        znodes = self.session.populate(self.cluster)
        self.register_missing()
        return znodes

    def register_missing(self) -> None:
        """Register the stub brokers that are not registered."""
        known = self.session.broker_ids()
        missing = [
            b for b in self.cluster.registrations(self.stubs.ports) if b.broker_id not in known
        ]
        self.broker_epochs.update(self.session.register(missing))

    def restore(self, hosted: Mapping[TopicPartition, tuple[int, ...]]) -> None:
        """Partitions are led by their first replica again, all are in sync."""
        states = self.session.states(list(hosted))
        self.session.write_in_bulk(
            SetData(
                paths.partition_state(tp),
                encode_partition_state(
                    LeaderAndIsr(
                        replicas[0], states[tp].leader_epoch + 1, replicas, CONTROLLER_EPOCH, 0
                    )
                ),
            )
            for tp, replicas in hosted.items()
            if states[tp].isr != replicas
        )

    def elect(self, contender: Contender) -> Election:
        """Have a contender elected, by waking it up or by deleting `/controller`.

        Raises:
            BenchmarkError: it was not.
        """
        if self.session.controller() == contender.controller_id:
            triggered_at = self.session.depose()
        else:
            triggered_at = contender.activate()
        return self.session.await_election(
            contender.controller_id,
            triggered_at=triggered_at,
            timeout_s=self.options.timeout_s,
            process=contender.process,
        )

    def rest(self, contender: Contender) -> None:
        """Freeze a contender and wait until ZooKeeper has forgotten it."""
        contender.process.pause()
        wait_until(
            lambda: (self.session.controller(), self.session.broker_ids()),
            until=lambda seen: seen[0] is None and contender.broker_id not in seen[1],
            timeout_s=SESSIONS_GONE_TIMEOUT_S,
            describe=f"the session of {contender.name} to run out",
        )

    def await_failover(self, contender: Contender) -> None:
        """Wait until, by its size, everything that a failover sends has arrived, and no more comes.

        Raises:
            BenchmarkError: it has not, or what was sent is none of a controller's requests.
        """
        self.await_requests(contender, self._has_all)

    def await_informed(self, contender: Contender) -> None:
        """The same while more may come.

        Raises:
            BenchmarkError: as in `await_failover`.
        """
        self.await_requests(contender, self._has_all, quiet_s=None)

    def _has_all(self, status: StubStatus) -> bool:
        smallest = max(self.cluster.size * SMALLEST_ENTRY_BYTES, 1)
        replicas = self.cluster.size * self.cluster.replication_factor
        return (
            sum(status.leader_and_isr_partitions.values()) >= replicas
            and min(status.update_metadata_bytes.values()) >= smallest
        )

    def await_requests(
        self,
        contender: Contender,
        arrived: Callable[[StubStatus], bool],
        *,
        quiet_s: float | None = QUIET_S,
    ) -> None:
        """Wait until enough has arrived at the brokers, and nothing more comes.

        Args:
            quiet_s: So long nothing comes from now on; None: something may come still. What went
                before does not count: what is waited for may be on its way.

        Raises:
            BenchmarkError: that does not come to pass.
        """
        began = time.monotonic()
        deadline = began + self.options.timeout_s
        while True:
            status = self.stubs.status()
            if status.refused:
                raise BenchmarkError(f"a broker was sent {status.refused[0]}")
            if arrived(status) and (
                quiet_s is None
                or (
                    time.monotonic() - began >= quiet_s
                    and self.stubs.is_quiet(status, quiet_s=quiet_s)
                )
            ):
                return
            if not contender.process.is_running:
                raise BenchmarkError(f"it ended with exit code {contender.process.exit_code}")
            if time.monotonic() > deadline:
                raise BenchmarkError(
                    f"after {self.options.timeout_s:g} s brokers have only got {status}"
                )
            time.sleep(QUIET_S / 4)

    @contextlib.contextmanager
    def blaming(self, contender: Contender) -> Iterator[None]:
        """Name the contender in errors, with the end of its log."""
        try:
            yield
        except BenchmarkError as error:
            tail = contender.process.log_tail(lines=40)
            raise BenchmarkError(f"{contender.name}: {error}\n--- its log ---\n{tail}") from error

    def await_idle_machine(self) -> None:
        """Wait for a second without other work, for a while."""
        machine.wait_until_idle(busy_share=IDLE_SHARE, timeout_s=self.options.idle_timeout_s)

    def usage(self, contender: Contender) -> Usage:
        """What has been used so far."""
        seconds = {"ZooKeeper": machine.cpu_seconds(self.zookeeper.process.pid)}
        seconds["machine"] = machine.busy_seconds()
        seconds["benchmark"] = time.process_time()
        seconds["stub brokers"] = self.stubs.status().cpu_seconds
        if contender.process.is_running:
            seconds["controller"] = machine.cpu_seconds(contender.process.pid)
        return Usage(seconds)


@contextlib.contextmanager
def arena_of(
    options: Options, cluster: Cluster, console: Console, *, has_followers: bool = False
) -> Iterator[Arena]:
    """An arena with a cluster in it. With followers, they get in sync by themselves."""
    with contextlib.ExitStack() as stack:
        zookeeper = stack.enter_context(
            ZooKeeper(heap_mb=_zookeeper_heap_mb(cluster), java_options=TUNED_FOR_THROUGHPUT)
        )
        arena = Arena(options, cluster, zookeeper, has_followers=has_followers)
        stack.enter_context(arena.session)
        stack.enter_context(arena.stubs)
        began = time.monotonic()
        znodes = arena.prepare()
        console.print(
            f"{cluster.size:,} partitions of {len(cluster.topics):,} topics on {BROKERS} stub"
            f" brokers: {znodes:,} znodes in {time.monotonic() - began:.1f} s"
        )
        yield arena


def _zookeeper_heap_mb(cluster: Cluster) -> int:
    return max(ZOOKEEPER_HEAP_MB, cluster.size * ZOOKEEPER_HEAP_BYTES_PER_PARTITION >> 20)


@contextlib.contextmanager
def contenders_in(arena: Arena, *, is_asked: bool = False) -> Iterator[list[Contender]]:
    """The controllers that were asked for; killed afterwards.

    Args:
        is_asked: Whether brokers send them requests.
    """
    with contextlib.ExitStack() as stack:
        contenders: list[Contender] = []
        for side in SIDES:
            if side in arena.options.sides:
                contender = _contender(side, arena, is_asked=is_asked)
                stack.callback(contender.close)
                contenders.append(contender)
        yield contenders


def _contender(side: str, arena: Arena, *, is_asked: bool) -> Contender:
    if side == KAFKA:
        return KafkaController(
            arena.connect_string, protocol_version=arena.cluster.protocol_version
        )
    return RegentController(arena.connect_string, is_asked=is_asked)

"""Where controllers are measured: one ZooKeeper, the stub brokers, and a session that watches."""

import time

from benchmarks import machine
from benchmarks.benchmark import Options
from benchmarks.cluster import PROTOCOL_VERSION, Cluster
from benchmarks.contenders import Contender
from benchmarks.errors import BenchmarkError
from benchmarks.measurement import ELECTED, RESUMED, STARTED, Measurement, measure_delivery
from benchmarks.stub.process import StubBrokers
from benchmarks.verification import Verifier
from benchmarks.zookeeper import ZooKeeperSession, clock_offset
from sandbox import ZooKeeper, wait_until

CHROOT = "/kafka"
SESSIONS_GONE_TIMEOUT_S = 60.0
QUIET_S = 1.0
IDLE_SHARE = 0.15  # of the processors, before a measurement
IDLE_TIMEOUT_S = 10.0
LARGEST_CLOCK_STEP_NS = 5_000_000
SMALLEST_ENTRY_BYTES = 40  # of a partition in UpdateMetadata


class Arena:
    """ZooKeeper, the stub brokers and the session that watches; measures the elected one."""

    def __init__(self, options: Options, cluster: Cluster, zookeeper: ZooKeeper) -> None:
        self.options = options
        self.cluster = cluster
        self.zookeeper = zookeeper
        self.stubs = StubBrokers(
            cluster.broker_ids, config={"inter.broker.protocol.version": PROTOCOL_VERSION}
        )
        self.session = ZooKeeperSession(zookeeper.connect_string + CHROOT)
        self._hosted = {b: len(cluster.hosted_by(b)) for b in cluster.broker_ids}
        self._verifier: Verifier | None = None

    def prepare(self) -> int:
        """Fill ZooKeeper and register the stub brokers; returns the number of znodes."""
        znodes = self.session.populate(self.cluster)
        epochs = self.session.register(self.cluster.registrations(self.stubs.ports))
        self._verifier = Verifier(self.cluster, epochs)
        return znodes

    def turn(self, contender: Contender, number: int, samples: int) -> list[Measurement]:
        """Wake a contender up, have it elected again and again, and freeze it."""
        kind = STARTED if number == 0 else RESUMED
        measurements = [self.measure(contender, number, kind)]
        measurements += [self.measure(contender, number, ELECTED) for _ in range(samples)]
        contender.process.pause()
        self._await_end_of_session(contender)
        return measurements

    def measure(self, contender: Contender, number: int, kind: str) -> Measurement:
        """One failover."""
        machine.wait_until_idle(busy_share=IDLE_SHARE, timeout_s=IDLE_TIMEOUT_S)
        self.stubs.forget()
        cpu_before = self._cpu_seconds(contender)
        began_with = clock_offset()
        if kind == ELECTED:
            triggered_at = self.session.depose()
        else:
            triggered_at = contender.activate()
        timeout_s = self.options.timeout_s
        try:
            election = self.session.await_election(
                contender.controller_id, triggered_at=triggered_at, timeout_s=timeout_s
            )
            self._await_requests(contender, timeout_s=timeout_s)
        except BenchmarkError as error:
            raise BenchmarkError(f"{contender.name}: {error}\n{self._tail(contender)}") from error
        cpu_after = self._cpu_seconds(contender)
        window_s = (time.monotonic_ns() - triggered_at) / 1e9
        if abs(clock_offset() - began_with) > LARGEST_CLOCK_STEP_NS:
            raise BenchmarkError("the machine's clock was set meanwhile")
        assert self._verifier is not None
        delivery = self._verifier.verify(election, self.stubs.take())
        cpu = {name: cpu_after[name] - cpu_before.get(name, 0.0) for name in cpu_after}
        cpu["others"] = max(cpu.pop("machine") - sum(cpu.values()), 0.0)
        return measure_delivery(contender, number, kind, election, delivery, cpu, window_s=window_s)

    def _await_requests(self, contender: Contender, *, timeout_s: float) -> None:
        """Wait until, by its size, everything has arrived, and nothing more comes."""
        deadline = time.monotonic() + timeout_s
        while True:
            status = self.stubs.status()
            if status.refused:
                raise BenchmarkError(f"a broker was sent {status.refused[0]}")
            enough = self.cluster.size * SMALLEST_ENTRY_BYTES
            arrived = all(
                status.leader_and_isr_partitions[broker_id] >= self._hosted[broker_id]
                and status.update_metadata_bytes[broker_id] >= enough
                for broker_id in self.cluster.broker_ids
            )
            if arrived and self.stubs.is_quiet(status, quiet_s=QUIET_S):
                return
            if not contender.process.is_running:
                raise BenchmarkError(f"it ended with exit code {contender.process.exit_code}")
            if time.monotonic() > deadline:
                raise BenchmarkError(f"after {timeout_s:g} s brokers have only got {status}")
            time.sleep(QUIET_S / 4)

    def _await_end_of_session(self, contender: Contender) -> None:
        """Wait until ZooKeeper has forgotten a frozen contender."""
        wait_until(
            lambda: (self.session.controller(), self.session.broker_ids()),
            until=lambda seen: seen[0] is None and contender.broker_id not in seen[1],
            timeout_s=SESSIONS_GONE_TIMEOUT_S,
            describe=f"the session of {contender.name} to run out",
        )

    def _cpu_seconds(self, contender: Contender) -> dict[str, float]:
        seconds = {"ZooKeeper": machine.cpu_seconds(self.zookeeper.process.pid)}
        seconds["machine"] = machine.busy_seconds()
        seconds["stub brokers"] = self.stubs.status().cpu_seconds
        if contender.process.is_running:
            seconds["controller"] = machine.cpu_seconds(contender.process.pid)
        return seconds

    @staticmethod
    def _tail(contender: Contender) -> str:
        return f"--- its log ---\n{contender.process.log_tail(lines=15)}"

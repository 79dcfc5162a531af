"""A whole cluster in one thread: ZooKeeper, brokers, Regent processes, people, faults, and time.

One generator of random numbers decides who makes the next step. Nothing else is random, nothing
depends on the wall clock or on the order of a set: a seed replays exactly.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import accumulate
from typing import Any

from regent.controller import events as e
from regent.simulation.broker_znodes import encode_cluster_id
from regent.simulation.clock import Clock
from regent.simulation.zookeeper import InMemoryClient, InMemoryZooKeeper
from regent.zk_data import paths
from regent.zk_data.effects import Effect
from regent.zk_data.operations import Create
from tests.simulation.broker import SimulatedBroker
from tests.simulation.checkers.safety import SafetyChecker
from tests.simulation.convergence import check_converged
from tests.simulation.disturbances import Disturbance
from tests.simulation.driver import RegentProcess
from tests.simulation.elector import Elector
from tests.simulation.endpoint import Endpoint
from tests.simulation.faults import Faults
from tests.simulation.hearing import Hearing
from tests.simulation.network import Network
from tests.simulation.orderly_stops import OrderlyStops
from tests.simulation.removals import Removals
from tests.simulation.replicated_log import Ledger
from tests.simulation.replication import Replication
from tests.simulation.rival import RivalController
from tests.simulation.swarm import CALM_SPEEDS, Swarm
from tests.simulation.trace import InvariantViolatedError, Trace
from tests.simulation.turns import rotated
from tests.simulation.workload import Workload

SESSION_TIMEOUT_MS = 6_000
SETTLE_TIME_MS = 240_000
SETTLE_STEPS = 60_000

Disturb = Callable[[RegentProcess, Effect[Any]], Disturbance | None]


class World:
    """Everything there is; what befalls a process at an effect chance decides, or `disturb`."""

    def __init__(
        self,
        seed: int | str,
        *,
        swarm: Swarm | None = None,
        echo: Callable[[str], None] | None = None,
    ) -> None:
        self.rng = random.Random(f"regent {seed}")
        if swarm is None:
            swarm = Swarm.of(
                self.rng,
                standby=random.Random(f"standby {seed}"),
                suspicions=random.Random(f"suspicions {seed}"),
                removals=random.Random(f"removals {seed}"),
            )
        self.swarm = swarm
        self.clock = Clock()
        self.trace = Trace(self.clock.now_ms, echo=echo)
        self.protocol = self.swarm.protocol
        self.is_turbulent = True
        self.disturb: Disturb | None = None
        self.session_timeout_ms = SESSION_TIMEOUT_MS
        self.zookeeper = InMemoryZooKeeper()
        self._owners: dict[int, str] = {}
        self._contact: dict[InMemoryClient, int] = {}
        self.ledger = Ledger()
        self.network = Network(self)
        self.endpoint = Endpoint(self)
        self.replication = Replication(self)
        self.faults = Faults(self)
        self.removals = Removals(self)
        self.elector = Elector(self)
        self.hearing = Hearing(self)
        self.brokers = {i: SimulatedBroker(self, i) for i in range(1, self.swarm.brokers + 1)}
        self.rivals = [RivalController(self, b) for b in self.brokers.values()]
        self.regents: list[RegentProcess] = []
        self.safety = SafetyChecker(self)
        self.workload = Workload(self)
        self.orderly_stops = OrderlyStops(self)
        self._lives = 0
        self._open_for_business()

    def _open_for_business(self) -> None:
        """Brokers start first, as they create the nodes that everybody watches."""
        admin = self.connect("admin")
        for path in paths.PERSISTENT_PATHS:
            admin.multi([Create(path)])
        for path, data in ((paths.CLUSTER, b""), (paths.CLUSTER_ID, encode_cluster_id("one"))):
            admin.multi([Create(path, data)])
        if self.swarm.suspects:
            self.elector.open_queue(admin)
        for broker in self.brokers.values():
            broker.start()
        for slot in range(1, self.swarm.regents + 1):
            self.start_regent(slot)

    # Sessions

    def connect(self, owner: str) -> InMemoryClient:
        """A client with a new session."""
        client = self.zookeeper.connect()
        self.owns(client, owner)
        self._contact[client] = 0
        return client

    def owns(self, client: InMemoryClient, owner: str) -> None:
        """Note whose the client's current session is. It is in contact with the servers."""
        self._owners[client.session_id] = owner
        self.found_contact(client)

    def owner_of(self, session_id: int) -> str:
        return self._owners[session_id]

    def regent_of(self, session_id: int) -> RegentProcess | None:
        """The living process whose session that is."""
        return next(
            (p for p in self.regents if p.is_alive and p.client.session_id == session_id), None
        )

    def found_contact(self, client: InMemoryClient) -> None:
        self._contact[client] = self._contact.get(client, 0) + 1

    def lost_contact(self, client: InMemoryClient) -> None:
        """The servers get nothing from the client: its session ends unless it returns in time."""
        self.found_contact(client)
        contact, session_id = self._contact[client], client.session_id

        def expire() -> None:
            if self._contact[client] == contact and self.zookeeper.is_alive(session_id):
                self.trace.line("zookeeper", "expires", f"{self._owners[session_id]} {session_id}")
                self.zookeeper.expire(session_id)

        self.clock.after(self.session_timeout_ms, expire)

    def abandon(self, client: InMemoryClient) -> None:
        """The client's process is dead."""
        client.disconnect()
        self.lost_contact(client)

    # Starting

    def start_regent(self, slot: int) -> RegentProcess:
        """A new life of a Regent process."""
        self._lives += 1
        process = RegentProcess(self, slot, self._lives)
        self.regents = [p for p in self.regents if p.slot != slot] + [process]
        self.regents.sort(key=lambda p: p.slot)
        return process

    def restart_regent_after(self, slot: int, delay_ms: int) -> None:
        def restart() -> None:
            if not any(p.slot == slot and p.is_alive for p in self.regents):
                self.start_regent(slot)

        self.clock.after(delay_ms, restart)

    def start_broker(self, broker: SimulatedBroker) -> None:
        """Start a broker, again and again until its earlier life is forgotten."""
        if not broker.is_running and not broker.start():
            self.start_broker_after(broker, 500)

    def start_broker_after(self, broker: SimulatedBroker, delay_ms: int) -> None:
        self.clock.after(delay_ms, lambda: self.start_broker(broker))

    def restart_broker_after(self, broker: SimulatedBroker, delay_ms: int) -> None:
        def restart() -> None:
            if broker.is_running:
                broker.stop()
            self.start_broker(broker)

        self.clock.after(delay_ms, restart)

    def disturbance(self, process: RegentProcess, effect: Effect[Any]) -> Disturbance | None:
        """What befalls a process at an effect."""
        if self.disturb is not None:
            return self.disturb(process, effect)
        found = self.faults.disturbance(effect) if self.is_turbulent else None
        if found is not None and found.is_crash:
            self.restart_regent_after(process.slot, self.rng.randint(100, 12_000))
        return found

    def notice_upgrades(self) -> None:
        """If the lowest protocol version of the brokers has risen, Regent's channels notice."""
        lowest = min(broker.protocol for broker in self.brokers.values())
        if lowest <= self.protocol:
            return
        self.protocol = lowest
        self.trace.line("world", "is upgraded", lowest)
        for process in self.regents:
            active = process.controller.active
            if process.is_alive and active is not None:
                process.put(e.InterBrokerProtocolChanged(active.context.term.epoch, lowest))

    # Time

    def run(self, steps: int) -> None:
        """Turbulence: that many steps."""
        actors = self._actors(self.swarm.speeds)
        acts, weights = [act for act, _ in actors], list(accumulate(w for _, w in actors))
        for _ in range(steps):
            (act,) = self.rng.choices(acts, cum_weights=weights)
            if act():
                self.clock.advance(self.rng.randrange(4))
            elif not any(other() for other in acts[:4]):
                self._pass_time()

    def calm_down(self) -> None:
        """Faults end."""
        self.trace.line("world", "calms down")
        self.is_turbulent = False
        self.faults.end()

    def settle(self, *, until: Callable[[], bool] = lambda: False) -> None:
        """Let everybody do what there is to do, until nothing is left or a condition holds; then
        what recurs happens once more, and everybody does what follows from it.
        """
        acts = [act for act, _ in self._actors(CALM_SPEEDS)]
        deadline_ms = self.clock.now_ms() + SETTLE_TIME_MS
        recurs_until_ms: int | None = None
        for _ in range(SETTLE_STEPS):
            if until():
                return
            if any(act() for act in rotated(self.rng, acts)):
                self.clock.advance(1)
                continue
            at_ms = self.clock.next_single_at_ms()
            if at_ms is None:
                at_ms = self.clock.next_at_ms()
                if recurs_until_ms is None and at_ms is not None:
                    # Where nodes are removed the minute of the watch check is waited for.
                    recurs_until_ms = at_ms + (60_000 if self.swarm.removes else 0)
                if at_ms is None or recurs_until_ms is None or at_ms > recurs_until_ms:
                    return
            if at_ms > deadline_ms:
                raise InvariantViolatedError("time is up, and still things are to happen")
            self.clock.advance(max(0, at_ms - self.clock.now_ms()))
        raise InvariantViolatedError(f"no end after {SETTLE_STEPS} steps of calm")

    def converge(self) -> None:
        """Calm, time, and a look at what has become of it all."""
        self.calm_down()
        self.settle()
        if self.removals.mend():  # the controller has moved before it learned of something
            for broker in self.brokers.values():
                self.start_broker(broker)
            self.settle()
        check_converged(self)
        if self.swarm.ends_with_one_down:
            broker = self.rng.choice(list(self.brokers.values()))
            broker.crash()
            self.settle()
            check_converged(self)
            self.start_broker(broker)
            self.settle()
            check_converged(self)

    def _pass_time(self) -> bool:
        at_ms = self.clock.next_at_ms()
        if at_ms is None:
            return False
        self.clock.advance(max(1, at_ms - self.clock.now_ms()))
        return True

    def _actors(self, speeds: dict[str, float]) -> list[tuple[Callable[[], bool], float]]:
        """Who may make a step, with weights. The first four have duties, not whims."""
        actors: list[tuple[Callable[[], bool], float]] = [
            (self._regent_acts, speeds["regent"]),
            (self._regent_listens, speeds["watch"]),
            (self._network_acts, speeds["network"]),
            (self.replication.act, speeds["broker"]),
            (self.elector.act, speeds["elector"]),
        ]
        if self.swarm.warm_standby:
            actors.append((self._standby_acts, speeds["standby"]))
        if self.swarm.hears:
            actors.append((self.hearing.act, speeds["hearing"]))
        if self.swarm.rivals:
            actors.append((self._rival_acts, speeds["rival"]))
        if self.is_turbulent:
            actors.append((self._pass_time, speeds["clock"]))
            actors.append((self.faults.act, speeds["fault"]))
            actors.append((self.workload.act, speeds["work"]))
        return actors

    def _regent_acts(self) -> bool:
        return self._one_of([p.act for p in self.regents])

    def _network_acts(self) -> bool:
        return self._one_of([self.network.act, self.endpoint.act])

    def _regent_listens(self) -> bool:
        return self._one_of([p.act_on_zookeeper for p in self.regents])

    def _standby_acts(self) -> bool:
        return self._one_of([p.act_on_standby for p in self.regents])

    def _rival_acts(self) -> bool:
        return self._one_of([rival.act for rival in self.rivals])

    def _one_of(self, acts: list[Callable[[], bool]]) -> bool:
        return any(act() for act in rotated(self.rng, acts))

"""What can go wrong, each a method; a seed enables some of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from regent.controller import events as e
from regent.zk_data import paths
from regent.zk_data.effects import Effect
from regent.zk_data.operations import Create, Delete, SetData
from tests.simulation.broker import SimulatedBroker
from tests.simulation.disturbances import Disturbance
from tests.simulation.driver import RegentProcess
from tests.simulation.isr_change_requests import presume
from tests.simulation.swarm import PROTOCOLS, REMOVALS

if TYPE_CHECKING:
    from tests.simulation.world import World

GARBAGE = (b"", b"{", b"null", b"[]", b'{"version":1}', b"\xff\xfe", b'{"partitions":{"0":7}}')


class Faults:
    """Causes and counts faults, and undoes all of them at the end of turbulence."""

    def __init__(self, world: World) -> None:
        self.counts: Counter[str] = Counter()
        self._world = world
        self._undo: list[Callable[[], object]] = []
        self._damaged: dict[str, bytes] = {}

    def act(self) -> bool:
        """One fault, chosen by the weights of the seed."""
        enabled = self._world.swarm.faults
        if not enabled:
            return False
        (name,) = self._world.rng.choices(list(enabled), list(enabled.values()))
        of = self._world.removals if name in REMOVALS else self
        happened = bool(getattr(of, name)())
        self.counts[name] += happened
        return happened

    def disturbance(self, effect: Effect[Any]) -> Disturbance | None:
        """What befalls a process at an effect, by chance."""
        probability = self._world.swarm.disturbance
        if not probability or self._world.rng.random() >= probability:
            return None
        disturbance = self._world.rng.choice([d for d in Disturbance if d.can_befall(effect)])
        self.counts[disturbance.name.lower()] += 1
        return disturbance

    def end(self) -> None:
        """Whatever is broken works again, or can be started again."""
        world = self._world
        world.network.heal()
        for process in world.regents:
            process.is_paused = process.is_cut_off = False
        for broker in world.brokers.values():
            broker.resume()
        for undo in self._undo:
            undo()
        self._undo.clear()
        self._mend()
        world.removals.mend()
        for broker in world.brokers.values():
            if broker.failed or broker.refuses:
                broker.stop()
            if not broker.is_running:
                world.start_broker(broker)

    def _regent(self) -> RegentProcess | None:
        candidates = [p for p in self._world.regents if p.is_alive and not p.is_paused]
        return self._world.rng.choice(candidates) if candidates else None

    def _broker(self) -> SimulatedBroker | None:
        candidates = [b for b in self._world.brokers.values() if b.is_responsive]
        return self._world.rng.choice(candidates) if candidates else None

    # Regent

    def crash_regent(self) -> bool:
        process = self._regent()
        if process is None:
            return False
        process.crash()
        self._world.restart_regent_after(process.slot, self._world.rng.randint(100, 12_000))
        return True

    def stop_regent(self) -> bool:
        """As Kubernetes does, by SIGTERM: the controller is handed over first."""
        process = self._regent()
        if process is None:
            return False
        process.shut_down()
        return True

    def pause_regent(self) -> bool:
        """Like a garbage collection that outlasts the session, or nearly so."""
        process = self._regent()
        if process is None:
            return False
        duration_ms = self._world.rng.randint(500, 15_000)
        self._world.trace.line(process.name, "pauses", f"for {duration_ms} ms")
        process.is_paused = True
        self._world.lost_contact(process.client)

        def resume() -> None:
            process.is_paused = False
            self._world.found_contact(process.client)

        self._world.clock.after(duration_ms, resume)
        return True

    def lose_connection(self) -> bool:
        process = self._regent()
        if process is None or not process.client.is_connected:
            return False
        self._world.trace.line(process.name, "loses connection")
        process.client.disconnect()
        self._world.lost_contact(process.client)
        return True

    def cut_from_zookeeper(self) -> bool:
        process = self._regent()
        if process is None or not self.lose_connection_of(process):
            return False
        process.is_cut_off = True

        def lift() -> None:
            process.is_cut_off = False

        self._world.clock.after(self._world.rng.randint(500, 15_000), lift)
        return True

    def lose_connection_of(self, process: RegentProcess) -> bool:
        """The connection of one process breaks."""
        if not process.client.is_connected:
            return False
        self._world.trace.line(process.name, "loses connection", "for some time")
        process.client.disconnect()
        self._world.lost_contact(process.client)
        return True

    def expire_regent(self) -> bool:
        process = self._regent()
        if process is None or not self._world.zookeeper.is_alive(process.client.session_id):
            return False
        self._world.trace.line(process.name, "session expires")
        self._world.zookeeper.expire(process.client.session_id)
        return True

    def move_eligibility(self) -> bool:
        self._world.elector.depose()
        return True

    def suspect_regent(self) -> bool:
        """A replica finds, rightly or not, that others are absent, or one of them names it."""
        process, rng = self._regent(), self._world.rng
        others = [] if process is None else self._world.elector.others_in_the_queue(process)
        if process is None or not others:
            return False
        absent = others if rng.random() < 0.6 else rng.sample(others, rng.randint(1, len(others)))
        is_named = rng.random() < 0.3
        unheard = [other for other in others if other not in absent and rng.random() < 0.5]
        self._world.trace.line(
            process.name, "suspects", f"{absent} unheard={unheard} is_named={is_named}"
        )
        process.put(
            e.ReplicasAbsent(
                process.client.session_id,
                tuple(
                    e.AbsentReplica(session_id, "suspected", rng.random() < 0.5)
                    for session_id in absent
                ),
                is_named,
                tuple(e.AbsentReplica(session_id, "unheard") for session_id in unheard),
            )
        )
        return True

    def delete_controller_node(self) -> bool:
        """As people do to force an election."""
        if self._world.zookeeper.get(paths.CONTROLLER) is None:
            return False
        return self._world.workload.multi(Delete(paths.CONTROLLER))

    def upgrade(self) -> bool:
        """One broker of those that are behind is restarted with the next
        inter.broker.protocol.version: a step of a rolling upgrade."""
        lowest = min(b.upgrade_to for b in self._world.brokers.values())
        newer = [protocol for protocol in PROTOCOLS if protocol > lowest]
        brokers = self._world.brokers.values()
        behind = [b for b in brokers if b.upgrade_to == lowest and b.is_responsive]
        if not newer or not behind:
            return False
        broker = self._world.rng.choice(behind)
        broker.upgrade_to = newer[0]
        broker.stop()
        self._world.start_broker_after(broker, self._world.rng.randint(1, 5_000))
        return True

    def report_of_a_former_term(self) -> bool:
        """A channel that failed in a former term, or that led to a former life of its broker."""
        process, broker = self._regent(), self._broker()
        active = None if process is None else process.controller.active
        if process is None or broker is None or active is None:
            return False
        epoch, broker_epoch = active.context.term.epoch, broker.epoch
        if self._world.rng.random() < 0.5:
            epoch -= 1
        else:
            broker_epoch -= 1
        process.put(e.ChannelFailed(epoch, broker.broker_id, broker_epoch, "of the past"))
        return True

    # Brokers

    def crash_broker(self) -> bool:
        broker = self._broker()
        if broker is None:
            return False
        broker.crash()
        self._world.start_broker_after(broker, self._world.rng.randint(100, 15_000))
        return True

    def stop_broker(self) -> bool:
        broker = self._broker()
        if broker is None:
            return False
        broker.stop()
        self._world.start_broker_after(broker, self._world.rng.randint(1, 5_000))
        return True

    def stop_broker_in_order(self) -> bool:
        """By SIGTERM with controlled.shutdown.enable: it asks the controller first."""
        broker, rng = self._broker(), self._world.rng
        return broker is not None and self._world.orderly_stops.begin(
            broker, is_given_up=rng.random() < 0.2, is_slow=rng.random() < 0.3
        )

    def bounce_broker(self) -> bool:
        """Stop and start before anybody can notice the absence."""
        broker = self._broker()
        if broker is None:
            return False
        broker.stop()
        return broker.start()

    def pause_broker(self) -> bool:
        """Like a garbage collection that outlasts the session, or nearly so: it wakes up as what it
        was."""
        broker = self._broker()
        if broker is None:
            return False
        duration_ms = self._world.rng.randint(500, 15_000)
        broker.pause()
        self._world.clock.after(duration_ms, broker.resume)
        return True

    def late_answer(self) -> bool:
        """A controller gets an answer that was on its way when the channel was closed."""
        return self._world.network.deliver_late_answer()

    def expire_broker(self) -> bool:
        """The process lives on without its session and registers again later."""
        broker = self._broker()
        client = None if broker is None else broker.client
        if (
            broker is None
            or client is None
            or not self._world.zookeeper.is_alive(client.session_id)
        ):
            return False
        self._world.trace.line(str(broker), "session expires")
        self._world.zookeeper.expire(client.session_id)
        broker.was_away = True
        return True

    def fail_log_dir(self) -> bool:
        broker = self._broker()
        if broker is None or broker.client is None or not broker.client.is_connected:
            return False
        hosted = list(broker.replicas)
        if not hosted:
            return False
        failed = self._world.rng.sample(hosted, self._world.rng.randint(1, len(hosted)))
        broker.fail_log_dir(failed)
        self._world.restart_broker_after(broker, self._world.rng.randint(1_000, 15_000))
        return True

    def refuse_replicas(self) -> bool:
        """A broker does not lead or follow some of its partitions any more, until it restarts."""
        broker = self._broker()
        if broker is None or not broker.replicas:
            return False
        rng, hosted = self._world.rng, list(broker.replicas)
        refused = rng.sample(hosted, rng.randint(1, len(hosted)))
        self._world.trace.line(broker.name, "refuses from now on", [str(tp) for tp in refused])
        broker.refuses.update(dict.fromkeys(refused))
        broker.refuses_whole_requests = rng.random() < 0.3
        self._world.restart_broker_after(broker, rng.randint(1_000, 15_000))
        return True

    # Network and znodes

    def break_connection(self) -> bool:
        """The connection by which a broker asks the controller breaks."""
        return self._world.endpoint.break_connection()

    def ask_for_another_broker(self) -> bool:
        """A broker asks for the ISR of a partition that it does not lead, and is refused."""
        broker, partitions = self._broker(), self._world.safety.partitions
        if broker is None or not partitions:
            return False
        return presume(self._world, broker, self._world.rng.choice(partitions))

    def cut_link(self) -> bool:
        process, broker = self._regent(), self._broker()
        if process is None or broker is None:
            return False
        self._world.trace.line("network", "cuts", f"{process.name} from {broker.name}")
        duration_ms = self._world.rng.randint(500, 15_000)
        self._world.network.cut(process.name, broker.broker_id, duration_ms)
        return True

    def malform(self) -> bool:
        """Somebody writes nonsense. It is taken away in the end."""
        garbage = self._world.rng.choice(GARBAGE)
        number = self._world.rng.randint(100, 999)
        path = self._world.rng.choice(
            (
                f"{paths.BROKER_IDS}/{number}",
                f"{paths.BROKER_IDS}/junk{number}",
                paths.topic(f"junk{number}"),
                paths.delete_topic(f"junk{number}"),
                paths.isr_change_notification(f"isr_change_{number:010d}"),
                paths.log_dir_event_notification(f"log_dir_event_{number:010d}"),
                paths.config_change(f"config_change_{number:010d}"),
                paths.topic_config(f"junk{number}"),
                paths.broker_config(None),
                paths.PREFERRED_REPLICA_ELECTION,
                paths.REASSIGN_PARTITIONS,
            )
        )
        workload = self._world.workload
        if path == paths.broker_config(None):
            self._undo.append(workload.reset_unclean_default)
            exists = self._world.zookeeper.get(path) is not None
            return workload.multi(SetData(path, garbage) if exists else Create(path, garbage))
        if not workload.multi(Create(path, garbage)):
            return False
        if not path.startswith((paths.DELETE_TOPICS, paths.PREFERRED_REPLICA_ELECTION)):
            self._undo.append(partial(workload.delete_recursively, path))
        return True

    def malform_state(self) -> bool:
        """Somebody damages the state of a partition. In the end it is corrected, and as nobody can
        know of that, the brokers concerned are restarted."""
        partitions = self._world.safety.partitions
        if not partitions:
            return False
        return self.damage(paths.partition_state(self._world.rng.choice(partitions)))

    def damage(self, path: str) -> bool:
        """Overwrite a node with nonsense, until faults end."""
        node = self._world.zookeeper.get(path)
        if node is None or node.data in GARBAGE:
            return False
        self._damaged[path] = node.data
        return self._world.workload.multi(SetData(path, self._world.rng.choice(GARBAGE)))

    def malform_registration(self) -> bool:
        """Somebody damages the registration of a broker, which does not notice."""
        broker = self._broker()
        if broker is None:
            return False
        broker.was_away = True
        return self.damage(paths.broker_id(broker.broker_id))

    def _mend(self) -> None:
        for path, data in self._damaged.items():
            node = self._world.zookeeper.get(path)
            if node is None or node.data not in GARBAGE:
                continue
            self._world.workload.multi(SetData(path, data))
            damaged = paths.broker_of(path)
            if damaged is not None and self._world.swarm.removes:
                # One that has given up its shutdown may follow nobody: the note about it is gone.
                broker = self._world.brokers[damaged]
                if broker.is_running:
                    broker.stop()
            if paths.partition_of_state(path) is None:
                continue
            for broker in self._world.brokers.values():
                if broker.is_running:
                    broker.stop()
        self._damaged.clear()

    def move_listener(self) -> bool:
        """A broker rewrites its registration, as after a change of its advertised listeners."""
        broker = self._broker()
        return broker is not None and broker.move_listener()

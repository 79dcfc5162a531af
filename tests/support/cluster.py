"""A real cluster as tests use it: brokers, znodes, metadata, tools, Regents that come and go."""

from __future__ import annotations

import contextlib
import copy
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from regent.model.topic import is_internal_topic
from sandbox import KafkaBroker, KafkaCluster, KafkaTools, ZooKeeper, wait_until
from sandbox.kafka_jars import DEFAULT_VERSION, version_tuple
from sandbox.regent_process import RegentProcess
from sandbox.znodes import end_session
from tests.support.metadata import Connection, Leadership, Metadata, Partition
from tests.support.znodes import Znodes

SESSION_TIMEOUT_MS = 60_000
"""Session timeout of brokers and Regents: on a busy machine, too, only tests end sessions."""

BROKERS_LISTENER = "BROKERS"

_LISTENERS_APART: Mapping[str, str | int | bool] = {
    "listeners": "PLAINTEXT://{address},BROKERS://127.0.0.1:0",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,BROKERS:PLAINTEXT",
    "inter.broker.listener.name": BROKERS_LISTENER,
}
"""Clients, who have another one, do not see a controller that is announced to brokers only."""

ENDPOINT: Mapping[str, str | int | bool] = {
    "endpoint_port": 0,
    "endpoint_announced_listeners": BROKERS_LISTENER,
    "inter_broker_listener": BROKERS_LISTENER,
}
"""Settings of a Regent that brokers can ask."""

_WARM_SINCE = (3, 0)
"""From this Kafka version on its ZooKeeper has recursive watches."""

_DEPOSED_MEANWHILE = "Controller moved to another broker when moving some"

_numbers = itertools.count(1)


class Cluster:
    """Brokers, and how they look from outside."""

    def __init__(
        self,
        kafka: KafkaCluster,
        znodes: Znodes,
        *,
        regent_settings: Mapping[str, str | int | bool] = MappingProxyType({}),
        zookeeper_version: str = DEFAULT_VERSION,
    ) -> None:
        self.kafka = kafka
        self.znodes = znodes
        self.regent_settings = regent_settings
        is_warm = version_tuple(zookeeper_version) >= _WARM_SINCE
        self.standby_phase = "current" if is_warm else "unsupported"
        self.tools = KafkaTools(kafka.bootstrap_servers)
        version = version_tuple(kafka.version)
        self.connections = {b.broker_id: Connection(b.port, version=version) for b in kafka.brokers}

    @property
    def broker_ids(self) -> list[int]:
        return [broker.broker_id for broker in self.kafka.brokers]

    @property
    def running(self) -> list[KafkaBroker]:
        return [broker for broker in self.kafka.brokers if broker.is_running]

    def broker(self, broker_id: int) -> KafkaBroker:
        return self.kafka.broker(broker_id)

    def metadata(self, broker_id: int) -> Metadata:
        """What a broker tells clients."""
        return self.connections[broker_id].metadata()

    def in_client_mode(self) -> Cluster:
        """The same cluster, whose Regents run in client mode: a broker is the controller."""
        same = copy.copy(self)
        same.regent_settings = {"inter_broker_listener": BROKERS_LISTENER, "mode": "client"}
        return same

    def close(self) -> None:
        for connection in self.connections.values():
            connection.close()

    # Waiting for what everybody shall see

    def wait(self, condition: Callable[[], Any], describe: str, **options: Any) -> Any:
        """``wait_until`` with the usual deadline and the brokers' logs."""
        return wait_until(
            condition,
            describe=describe,
            logs=[*options.pop("logs", ()), *(broker.log_path for broker in self.running)],
            **options,
        )

    def wait_for_a_broker_as_controller(self) -> int:
        """Wait until a broker's own controller is elected and has informed all brokers; its id."""
        self.wait(
            lambda: self.znodes.controller() in self.znodes.broker_ids(),
            "a broker's own controller to be elected",
            interval_s=0.01,
        )
        return self.wait_for_announced_controller()

    def wait_for_announced_controller(self) -> int:
        """Wait until every running broker names the controller that ZooKeeper names; its id.

        Of a controller that clients do not see, older brokers show only that it is another one.
        """

        def named() -> dict[int, tuple[int | None, ...]]:
            actual = self.znodes.controller()
            return {
                b.broker_id: (self._named_by(b.broker_id, actual), actual) for b in self.running
            }

        found = self.wait(
            named,
            "all to name one controller",
            until=lambda pairs: all(told == actual is not None for told, actual in pairs.values()),
        )
        ((_, controller_id), *_) = found.values()
        return int(controller_id)

    def _named_by(self, broker_id: int, actual: int | None) -> int | None:
        """The controller that a broker names; ``actual`` if it would not name that one."""
        told = self.metadata(broker_id)
        is_hidden = actual not in told.brokers
        if told.controller_id == -1 and is_hidden:
            return actual if not self.connections[broker_id].names_any_controller else -1
        return told.controller_id

    def wait_for_consistency(self, *, ignore: Iterable[str] = ()) -> dict[Partition, Leadership]:
        """Wait until every running broker tells clients what the znodes say; the leaderships."""

        def differences() -> dict[str, Any]:
            leaderships = self.leaderships(ignore=ignore)
            found: dict[str, Any] = {}
            for broker in self.running:
                expected = leaderships
                if not self.connections[broker.broker_id].tells_epochs:
                    expected = {tp: p._replace(leader_epoch=-1) for tp, p in expected.items()}
                told = self.metadata(broker.broker_id)
                partitions = {tp: p for tp, p in told.partitions.items() if tp[0] not in ignore}
                for tp in sorted(expected.keys() | partitions.keys()):
                    if expected.get(tp) != partitions.get(tp):
                        found[f"{tp} on {broker.broker_id}"] = (
                            expected.get(tp),
                            partitions.get(tp),
                        )
                if sorted(told.brokers) != self.znodes.broker_ids():
                    found[f"brokers on {broker.broker_id}"] = sorted(told.brokers)
            return found

        self.wait(
            differences,
            "metadata to equal the znodes",
            until=lambda found: not found,
        )
        return self.leaderships(ignore=ignore)

    def leaderships(self, *, ignore: Iterable[str] = ()) -> dict[Partition, Leadership]:
        """The leadership of all partitions that have one, by the znodes."""
        topics = [topic for topic in self.znodes.topics() if topic not in ignore]
        states = self.znodes.states(*topics) if topics else {}
        return {
            (topic, partition): Leadership(
                state["leader"], state["leader_epoch"], tuple(replicas), tuple(state["isr"])
            )
            for topic in topics
            for partition, replicas in (self.znodes.assignment(topic) or {}).items()
            if (state := states.get((topic, partition)))
        }

    def wait_in_sync(self, *topics: str) -> None:
        """Wait until all replicas of topics (all topics by default) are in sync."""
        self.wait(
            lambda: self.znodes.lagging(*topics),
            "all replicas to be in sync",
            until=lambda found: not found,
        )

    def wait_for_leader(self, topic: str, leader: int, partition: int = 0) -> dict[str, Any]:
        """Wait until a partition has this leader in ZooKeeper; its state."""
        state: dict[str, Any] = self.wait(
            lambda: self.znodes.state(topic, partition),
            f"{topic}-{partition} to be led by {leader}",
            until=lambda state: state.get("leader") == leader,
        )
        return state

    # Breaking and mending

    def kill_broker(self, *broker_ids: int) -> None:
        """SIGKILL brokers, and then end their sessions."""
        for broker_id in broker_ids:
            self.broker(broker_id).kill()
        for broker_id in broker_ids:
            self.broker(broker_id).end_session()
        self.wait(
            lambda: set(broker_ids).isdisjoint(self.znodes.broker_ids()),
            f"the registrations of brokers {broker_ids} to expire",
        )

    def kill_regent(self, process: RegentProcess) -> None:
        """SIGKILL the Regent that is the controller and end its session."""
        session_id = self.controller_session()
        process.kill()
        self.end_session(session_id)

    def controller_session(self) -> int:
        """Return the session that holds ``/controller``. Ask before the holder is killed or paused:
        a standby that suspects it takes over before the session ends."""
        return self.znodes.dump("/controller")["/controller"].owner

    def end_session(self, session_id: int) -> None:
        """End the session of a process that is dead or paused, as its expiry would."""
        end_session(self.kafka.zookeeper, session_id)

    def restore(self) -> None:
        """All brokers run, one of them is the controller, every replica is in sync.

        A broker's controller that is deposed in the middle of a transition keeps the requests that
        it has not sent, and fails at every transition once it is elected again. A restart helps.
        """
        self.kafka.start()
        for broker in self.kafka.brokers:
            if _DEPOSED_MEANWHILE in broker.process.log_of_this_run():
                broker.restart()
        self.wait_for_a_broker_as_controller()
        self.wait_in_sync()

    def clear(self) -> None:
        """All brokers run, one of them is the controller, and there are internal topics only."""
        self.restore()
        self.delete_topics()

    def delete_topics(self) -> None:
        """Delete all topics but internal ones. All brokers run, one of them as the controller.

        Coordinators remember the leader epochs of internal topics, and do not load a partition that
        begins anew with a lower one: its groups would have no coordinator until brokers restart.
        """

        def topics() -> list[str]:
            return [topic for topic in self.znodes.topics() if not is_internal_topic(topic)]

        for topic in topics():
            self.znodes.client.create(f"/admin/delete_topics/{topic}")
        self.wait(topics, "all topics to be deleted", until=lambda left: not left)


@contextlib.contextmanager
def cluster_of(
    version: str,
    *,
    brokers: int = 3,
    inter_broker_protocol: str | None = "2.6",
    log_directories: int = 1,
    session_timeout_ms: int = SESSION_TIMEOUT_MS,
    zookeeper_version: str = DEFAULT_VERSION,
    **config: str | int | bool,
) -> Iterator[Cluster]:
    """Brokers of a Kafka version with a ZooKeeper of their own.

    Args:
        inter_broker_protocol: The highest inter.broker.protocol.version, for releases that have
            it. With None all have their own, and a Regent serves them.
        config: The brokers' configuration, with underscores for dots.
    """
    is_limited = inter_broker_protocol is not None and version_tuple(
        inter_broker_protocol
    ) < version_tuple(version)
    with contextlib.ExitStack() as stack:
        zookeeper = stack.enter_context(ZooKeeper(version=zookeeper_version))
        kafka = KafkaCluster(
            zookeeper=zookeeper.connect_string,
            brokers=brokers,
            version=version,
            inter_broker_protocol_version=inter_broker_protocol if is_limited else None,
            session_timeout_ms=session_timeout_ms,
            log_directories=log_directories,
            config={
                "auto.leader.rebalance.enable": False,
                **{name.replace("_", "."): value for name, value in config.items()},
            },
        )
        if inter_broker_protocol is None:
            for broker in kafka.brokers:
                broker.config |= {
                    name: str(value).format(address=broker.bootstrap_servers)
                    for name, value in _LISTENERS_APART.items()
                }
        stack.enter_context(kafka)
        znodes = stack.enter_context(Znodes(zookeeper.connect_string))
        settings = ENDPOINT if inter_broker_protocol is None else {}
        cluster = Cluster(
            kafka, znodes, regent_settings=settings, zookeeper_version=zookeeper_version
        )
        stack.callback(cluster.close)
        yield cluster


@contextlib.contextmanager
def regent(
    cluster: Cluster,
    *,
    name: str = "regent",
    kubeconfig: Path | None = None,
    namespace: str | None = None,
    may_lead: bool = True,
    **settings: str | int | bool,
) -> Iterator[RegentProcess]:
    """A Regent, started and active or on standby; stopped in an orderly way at the end.

    One that may not lead this cluster is never ready, so nobody waits for that.
    """
    process = RegentProcess(
        zookeeper=cluster.kafka.zookeeper,
        kubeconfig=kubeconfig,
        name=name,
        forked=True,
        settings={
            "controller_id": 1_000_000_000 + next(_numbers),
            "zookeeper_session_timeout_ms": SESSION_TIMEOUT_MS,
            # it would move leaders five seconds after its election
            "auto_leader_rebalance_enable": False,
            **cluster.regent_settings,
            **({"namespace": namespace} if namespace is not None else {}),
            **settings,
        },
    )
    try:
        if may_lead:
            process.start()
        else:
            process.launch()
        yield process
        process.stop()
    finally:
        process.close()


def controller_id_of(process: RegentProcess) -> int:
    """The id under which a Regent holds ``/controller``."""
    return int(process.process.command[process.process.command.index("--controller-id") + 1])

"""Two Regents that know each other: one leads, the other one is prepared to take over."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from sandbox.regent_process import RegentProcess
from sandbox.znodes import end_session_of_owner
from tests.support.cluster import Cluster, controller_id_of, regent

_PRESENCE = "/regent/election-presence"


class Pair:
    """Two Regents; the standby's cache is current, if ZooKeeper has what that needs."""

    def __init__(self, cluster: Cluster, active: RegentProcess, standby: RegentProcess) -> None:
        self.cluster = cluster
        self.active = active
        self.standby = standby

    def wait_until_prepared(self) -> None:
        def is_prepared() -> list[Any]:
            statuses = [process.status() or {} for process in (self.active, self.standby)]
            others = [(status.get("replicas") or {}).get("others") for status in statuses]
            phase = (statuses[1].get("warmStandby") or {}).get("phase")
            return [phase, *(list((other or {"none": ""}).values()) for other in others)]

        self.cluster.wait(
            is_prepared,
            "replicas that know each other",
            until=lambda seen: seen == [self.cluster.standby_phase, [None], [None]],
            logs=[self.active.log_path, self.standby.log_path],
        )

    def wait_for_take_over(self) -> float:
        """Wait until the standby holds ``/controller``. When that was seen, monotonic seconds."""
        self.cluster.wait(
            self.cluster.znodes.controller,
            "the standby to be elected",
            until=lambda controller_id: controller_id == controller_id_of(self.standby),
            interval_s=0.001,
            logs=[self.active.log_path, self.standby.log_path],
        )
        return time.monotonic()

    def history(self) -> str:
        """What both have logged of terms and of each other, in order; and who was the controller by
        the brokers' logs."""
        kept = ("lected", "esign", "suspect", "Taken over", "released", "failed", "slept", "lost")
        entries = [
            (entry["time"], process.name, entry)
            for process in (self.active, self.standby)
            for entry in process.log_entries()
            if entry["level"] != "INFO" or any(word in entry["message"] for word in kept)
        ]
        lines = [f"{at} {name} {entry}" for at, name, entry in sorted(entries, key=lambda e: e[:2])]
        for broker in self.cluster.kafka.brokers:
            lines += [
                f"{broker.broker_id}: {line}"
                for line in broker.log_path.read_text(errors="replace").splitlines()
                if "successfully elected as the controller" in line or "Resigned" in line
            ]
        return "\n".join(lines[-200:])

    def change_places(self) -> None:
        """The standby has taken over."""
        self.active, self.standby = self.standby, self.active


def _end_sessions(cluster: Cluster) -> None:
    """End the sessions of killed Regents, for which the next pair would wait."""
    for name in cluster.znodes.children(_PRESENCE):
        end_session_of_owner(cluster.kafka.zookeeper, f"{_PRESENCE}/{name}")


@contextmanager
def pair_of(
    cluster: Cluster, *, session_timeout_ms: int, suspicion_backoff_s: int = 30
) -> Iterator[Pair]:
    """Two Regents, one of which leads, and all brokers know it."""
    with ExitStack() as stack:
        stack.callback(_end_sessions, cluster)

        def started(name: str) -> RegentProcess:
            return stack.enter_context(
                regent(
                    cluster,
                    name=name,
                    warm_standby=True,
                    replica_host="127.0.0.1",
                    zookeeper_session_timeout_ms=session_timeout_ms,
                    suspicion_backoff_seconds=suspicion_backoff_s,
                )
            )

        first = started("regent-a")
        first.wait_until_active()
        second = started("regent-b")
        pair = Pair(cluster, first, second)
        pair.wait_until_prepared()
        cluster.wait_for_announced_controller()
        yield pair

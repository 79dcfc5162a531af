"""Of two Regents the one that leads is killed, frozen or restarted, again and again; sometimes a
broker crashes at the same time."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Final

from sandbox.regent_process import RegentProcess
from tests.matrix.flow import Flow, Stage
from tests.support.replica_pair import pair_of

_CRASHES: Final = 0.25
"""Share of the endings with which a broker crashes."""

_LONGEST_PAUSE_S: Final = 0.5
"""Before an ending, so that it meets the controller anywhere in its work."""

_SESSION_TIMEOUT_MS: Final = 15_000
"""Longer than a replica takes to suspect another one."""

_BACKOFF_S: Final = 1
"""A replica that was frozen, and so was deposed, has to be ready for the next ending."""

_ENDINGS: Final[Mapping[str, Callable[[RegentProcess], None]]] = {
    "kill": lambda process: process.kill(),
    "freeze": lambda process: process.pause(),
    "restart": lambda process: process.process.terminate(),
}
_RETURNS: Final[Mapping[str, Callable[[RegentProcess], None]]] = {
    "kill": lambda process: process.start(),
    "freeze": lambda process: process.resume(),
    "restart": lambda process: process.restart(),
}


def _end_replicas(stage: Stage) -> None:
    """The other one takes over each time, and no broker in between: the epoch rises by one."""
    cluster, znodes, chance = stage.cluster, stage.cluster.znodes, stage.chance
    with pair_of(
        cluster, session_timeout_ms=_SESSION_TIMEOUT_MS, suspicion_backoff_s=_BACKOFF_S
    ) as pair:
        for _ in range(stage.endings):
            ending = chance.choice(list(_ENDINGS))
            crashing = chance.choice(cluster.broker_ids) if chance.random() < _CRASHES else None
            epoch = znodes.controller_epoch()
            time.sleep(chance.uniform(0.0, _LONGEST_PAUSE_S))
            began = time.time()
            if crashing is not None:
                cluster.broker(crashing).kill()
            _ENDINGS[ending](pair.active)
            pair.wait_for_take_over()
            pair.standby.wait_until_active()
            raised = znodes.controller_epoch()
            assert raised == epoch + 1, f"{epoch} -> {raised} by {ending}:\n{pair.history()}"
            stage.producer.wait_for_progress()
            _RETURNS[ending](pair.active)
            if crashing is not None:
                cluster.kill_broker(crashing)  # until its session has expired
                cluster.broker(crashing).start()
                cluster.wait_in_sync()
                stage.disturbed.append((int(began * 1000), int(time.time() * 1000)))
            pair.change_places()
            pair.wait_until_prepared()
            cluster.wait_for_consistency()


REPLICA_ENDINGS = Flow(
    name="replica-endings",
    run=_end_replicas,
    assignment={p: [1 + (p + i) % 3 for i in range(3)] for p in range(6)},
    keys=24,
)

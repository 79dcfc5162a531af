"""What this process remembers about a BrokerDrain beside what it does about any resource.

Losing it is harmless: what moves is in ZooKeeper, and what was sent is sent once more.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from regent.kube.reassignment_memory import MovesMemory
from regent.reconcile.drains.transitions import is_significant
from regent.resources.broker_drain_status import BrokerDrainStatus


@dataclass(slots=True, kw_only=True)
class DrainMemory(MovesMemory[BrokerDrainStatus]):
    """Memory of one BrokerDrain."""

    is_significant: Callable[[BrokerDrainStatus, BrokerDrainStatus], bool] = is_significant

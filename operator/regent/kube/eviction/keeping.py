"""When a BrokerDrain that was made for an eviction is undone, and when it is removed."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from regent.kube.eviction.broker_pods import is_ready
from regent.kube.eviction.drain_records import KnownDrain
from regent.kube.eviction.settings import EvictionSettings
from regent.resources.broker_drain import BrokerDrain, DesiredDrainState


class Step(enum.Enum):
    """What is done about a BrokerDrain next; the values say why."""

    UNDO_RETURNED = "the pod is back"
    UNDO_ABANDONED = "nobody asks for the eviction any more"
    REMOVE = "it is undone"


def next_step(
    drain: KnownDrain, pod: Mapping[str, Any] | None, settings: EvictionSettings, *, now: datetime
) -> Step | None:
    """What is to be done about a drain; None: nothing now.

    Args:
        pod: The pod that has the name of the one to be evicted; None: there is none.
    """
    parsed, record = drain.parsed, drain.record
    if record is None or not isinstance(parsed, BrokerDrain) or parsed.metadata.is_being_deleted:
        return None
    if drain.is_undone:
        return Step.REMOVE
    if parsed.spec.desired_state is not DesiredDrainState.DRAINED or pod is None:
        return None
    if pod["metadata"]["uid"] != record.uid:
        return Step.UNDO_RETURNED if is_ready(pod) else None
    if pod["metadata"].get("deletionTimestamp") is not None:
        return None
    is_abandoned = record.age(now=now) >= timedelta(seconds=settings.abandoned_after_s)
    return Step.UNDO_ABANDONED if is_abandoned else None

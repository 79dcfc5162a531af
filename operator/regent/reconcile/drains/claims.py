"""Which of several BrokerDrains counts for a broker."""

from __future__ import annotations

from dataclasses import dataclass

from regent.resources.broker_drain import BrokerDrain, DesiredDrainState, UnreadableDrain
from regent.resources.broker_drain_status import DrainPhase


@dataclass(frozen=True, slots=True)
class DrainClaim:
    """A BrokerDrain that has something to do with its brokers.

    Attributes:
        brokers: The brokers that it drains.
        created: metadata.creationTimestamp. RFC 3339 in UTC, so that the texts sort by time.
        has_begun: Whether it has moved something.
        cordons: Whether its brokers are to be cordoned.
    """

    namespace: str
    name: str
    uid: str
    brokers: tuple[int, ...]
    created: str
    has_begun: bool
    cordons: bool

    @property
    def seniority(self) -> tuple[bool, str, str]:
        """The smallest one counts: what has begun first, then the oldest."""
        return (not self.has_begun, self.created, self.uid)


def claim_of(drain: BrokerDrain | UnreadableDrain) -> DrainClaim | None:
    """The claim of a BrokerDrain to its brokers; None: it does nothing about them any more."""
    if isinstance(drain, UnreadableDrain):
        return None
    metadata, status = drain.metadata, drain.status
    undone = drain.spec.desired_state is DesiredDrainState.UNDONE
    if metadata.is_being_deleted or (undone and status.phase is DrainPhase.UNDONE):
        return None
    return DrainClaim(
        namespace=metadata.namespace,
        name=metadata.name,
        uid=metadata.uid,
        brokers=drain.spec.brokers,
        created=metadata.creation_timestamp,
        has_begun=status.started_at is not None,
        cordons=not undone,
    )

"""Which of several BrokerDrains counts for a broker."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from typing import Self

from regent.reconcile.rivals import changed_claims
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
        cluster_id: Id of the Kafka cluster that it is for; None: it has not been served yet.
    """

    namespace: str
    name: str
    uid: str
    brokers: tuple[int, ...]
    created: str
    has_begun: bool
    cordons: bool
    cluster_id: str | None

    def in_cluster(self, cluster_id: str | None) -> Self:
        """The same claim, recorded for a cluster."""
        return dataclasses.replace(self, cluster_id=cluster_id)

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
        cluster_id=status.cluster_id,
    )


def news(
    before: DrainClaim | None, after: DrainClaim | None, _: Collection[DrainClaim]
) -> Callable[[DrainClaim | None], bool]:
    """For which rivals a change of another drain's claim may change which claim counts instead of
    theirs: those that it goes before, or did."""
    changed = changed_claims(before, after)

    def is_news_for(rival: DrainClaim | None) -> bool:
        return rival is not None and any(c.seniority < rival.seniority for c in changed)

    return is_news_for


def claim_before(
    uid: str, claims: Iterable[DrainClaim], *, cluster_id: str | None
) -> DrainClaim | None:
    """The claim that counts instead of that of a drain; None: that of the drain counts, or it has
    none.

    Args:
        claims: All claims to the brokers of the drain, its own included.
        cluster_id: Id of the Kafka cluster that Regent controls: others have other brokers.
    """
    here = [claim for claim in claims if claim.cluster_id in (None, cluster_id)]
    if all(claim.uid != uid for claim in here):
        return None
    first = min(here, key=lambda claim: claim.seniority)
    return None if first.uid == uid else first


def brokers_to_cordon(claims: Iterable[DrainClaim], *, cluster_id: str | None) -> tuple[int, ...]:
    """Brokers that get no new replicas, sorted.

    A drain that does not count does nothing, so it cordons nothing either: else what the one that
    counts has moved could not come back to its brokers.

    Args:
        claims: Those of all drains.
        cluster_id: Id of the Kafka cluster that Regent controls.
    """
    first: dict[int, DrainClaim] = {}
    here = [claim for claim in claims if claim.cluster_id in (None, cluster_id)]
    for claim in sorted(here, key=lambda claim: claim.seniority):
        for broker in claim.brokers:
            first.setdefault(broker, claim)
    counting = [claim for claim in here if all(first[b] is claim for b in claim.brokers)]
    return tuple(sorted({b for claim in counting if claim.cordons for b in claim.brokers}))

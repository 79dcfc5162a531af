"""Which changes of a claim are news for those that claim the same."""

from __future__ import annotations

from typing import Protocol, Self, TypeVar


class _ClusterClaim(Protocol):
    """A claim of a resource that a Kafka cluster serves."""

    @property
    def cluster_id(self) -> str | None:
        """Id of the Kafka cluster that it is for; None: no status has said so yet."""
        ...

    def in_cluster(self, cluster_id: str | None) -> Self:
        """The same claim in a cluster."""
        ...


ClaimT = TypeVar("ClaimT", bound=_ClusterClaim)


def changed_claims(before: ClaimT | None, after: ClaimT | None) -> tuple[ClaimT, ...]:
    """What a claim was and is; nothing if that says the same to rivals.

    The first status names the cluster that the resource is served for, where the claim counted
    before: were that news, each of n first statuses would have all n looked at. (If somebody writes
    another cluster there by hand, rivals see that with the next resync.)
    """
    if before is not None and after is not None and before.cluster_id is None:
        before = before.in_cluster(after.cluster_id)
    if before == after:
        return ()
    return tuple(claim for claim in (before, after) if claim is not None)

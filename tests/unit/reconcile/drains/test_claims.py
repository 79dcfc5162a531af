"""Which BrokerDrains count, and which brokers are cordoned for them."""

from __future__ import annotations

from typing import Any

import pytest

from regent.reconcile.drains.claims import DrainClaim, brokers_to_cordon
from regent.resources.broker_drain_status import DrainPhase
from tests.unit.reconcile.drains.draining import Cluster, Drain, older

HERE = "cluster-a"


def claim(name: str, *brokers: int, **changes: Any) -> DrainClaim:
    values: dict[str, Any] = {
        "namespace": "ops",
        "name": name,
        "uid": f"uid-{name}",
        "brokers": brokers,
        "created": "2026-05-01T10:00:00Z",
        "has_begun": False,
        "cordons": True,
        "cluster_id": None,
        **changes,
    }
    return DrainClaim(**values)


@pytest.mark.parametrize(
    ("claims", "cordoned"),
    [
        ([claim("a", 4), claim("b", 2, 3)], (2, 3, 4)),
        ([claim("a", 4, cordons=False)], ()),
        # One that does not count would keep from coming back what the one that counts has moved.
        ([claim("a", 4, has_begun=True, cordons=False), claim("b", 4, 5)], ()),
        ([claim("a", 4, cluster_id="cluster-b"), claim("b", 5, cluster_id=HERE)], (5,)),
    ],
    ids=["all", "to be undone", "undone first", "another cluster"],
)
def test_brokers_of_drains_that_count_are_cordoned(
    claims: list[DrainClaim], cordoned: tuple[int, ...]
) -> None:
    assert brokers_to_cordon(claims, cluster_id=HERE) == cordoned


def test_a_drain_of_another_kafka_cluster_stands_in_no_others_way() -> None:
    drain = Drain(Cluster({"t": [(1,)]}), 1)
    (own,) = drain.claims
    drain.others.append(older(own, cluster_id="cluster-b", has_begun=True))
    drain.finish()
    assert drain.is_in(DrainPhase.DRAINED)


def test_a_drain_waits_for_one_that_is_being_undone_and_goes_on_then() -> None:
    cluster = Cluster({"t": [(1, 2), (1, 3)]})
    first, second = Drain(cluster, 1, name="first"), Drain(cluster, 1, name="second")
    first.finish()
    first.change(desiredState="Undone")
    first.others = list(second.claims)
    first.finish()
    assert first.is_in(DrainPhase.UNDONE)
    assert cluster.replicas("t") == [(1, 2), (1, 3)]
    second.others = list(first.claims)
    second.finish()
    assert second.is_in(DrainPhase.DRAINED)

"""What if: snapshots with brokers that are not there yet, or no longer."""

from __future__ import annotations

import pytest

from regent_rebalance.errors import InvalidInputError
from regent_rebalance.goals import Goals
from regent_rebalance.json_files import encode_snapshot
from regent_rebalance.planner import make_plan
from regent_rebalance.snapshot import UNKNOWN, Snapshot
from regent_rebalance.what_if import WhatIf, assume, by_topic
from tests.unit.planner.clusters import cluster


@pytest.fixture
def snapshot() -> Snapshot:
    return cluster(["a", "b", "c", "c"], [[1, 2], [3, 1], [4, 3], [2, 4]], sizes=[1, 2, 3, 4])


def test_added_brokers_get_replicas_and_the_others_keep_their_names(snapshot: Snapshot) -> None:
    changed, sentences = assume(snapshot, WhatIf(added={0: "b", 9: "d"}))
    assert changed.brokers.ids.tolist() == [0, 1, 2, 3, 4, 9]
    ids = changed.brokers.ids[changed.replicas]
    assert ids.tolist() == snapshot.brokers.ids[snapshot.replicas].tolist()
    assert sentences == ("broker 0 is added in rack b", "broker 9 is added in rack d")
    plan = make_plan(changed, Goals(replica_balance=1.0))
    assert {0, 9} <= set(plan.changes.after.tolist())


def test_an_added_broker_has_the_smallest_disks() -> None:
    snapshot = cluster(["a", "b"], [[1, 2]])
    changed, _ = assume(snapshot, WhatIf(added={3: None}))
    assert changed.brokers.disk_bytes.tolist() == [UNKNOWN] * 3
    snapshot.brokers.disk_bytes[:] = [70, 50]
    changed, _ = assume(snapshot, WhatIf(added={3: None}))
    assert changed.brokers.disk_bytes.tolist() == [70, 50, 50]


def test_a_lost_rack_keeps_nothing_and_leads_nothing(snapshot: Snapshot) -> None:
    changed, (sentence,) = assume(snapshot, WhatIf(added={}, lost_racks=("c",)))
    assert changed.brokers.alive.tolist() == [True, True, False, False]
    assert sentence == (
        "rack c is lost, 2 brokers: 2 partitions lose their leader; 1 have no living replica (t1-0)"
    )
    plan = make_plan(changed, Goals())
    assert not {3, 4} & set(plan.changes.after.tolist())
    assert plan.summary.moves == 4


def test_a_lost_broker_keeps_nothing(snapshot: Snapshot) -> None:
    changed, (sentence,) = assume(snapshot, WhatIf(added={}, lost_brokers=(1,)))
    assert sentence == "broker 1 is lost: 1 partitions lose their leader; all have a living replica"
    assert 1 not in make_plan(changed, Goals()).changes.after.tolist()


def test_nothing_assumed_is_the_same_snapshot(snapshot: Snapshot) -> None:
    changed, sentences = assume(snapshot, WhatIf(added={}))
    assert encode_snapshot(changed) == encode_snapshot(snapshot)
    assert sentences == ()


@pytest.mark.parametrize(
    ("what_if", "message"),
    [
        (WhatIf(added={2: "a"}), "the snapshot has broker 2 already: choose other ids"),
        (WhatIf(added={}, lost_racks=("z",)), "the snapshot has no rack 'z'; it has 'a', 'b', 'c'"),
        (WhatIf(added={}, lost_brokers=(7,)), "brokers to be lost: the snapshot has no broker 7"),
    ],
)
def test_what_cannot_be_assumed_is_refused(
    snapshot: Snapshot, what_if: WhatIf, message: str
) -> None:
    with pytest.raises(InvalidInputError, match=message):
        assume(snapshot, what_if)


def test_replication_factors_are_given_by_name_or_pattern(snapshot: Snapshot) -> None:
    assert by_topic(snapshot, [("*", 3), ("t1", 2)], what="replication factors") == {
        "t0": 3,
        "t1": 2,
    }
    assert by_topic(snapshot, [("unknown", 3)], what="replication factors") == {"unknown": 3}
    with pytest.raises(InvalidInputError, match=r"no topic is like 'x-\*'"):
        by_topic(snapshot, [("x-*", 3)], what="replication factors")

"""What becomes of replicas on brokers that do not exist: a pure function of values."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from regent.admin.replica_assignment import BrokerRack
from regent.controller.topics.replica_replacement import replace_replicas
from regent.model.partition import ReplicaAssignment

PHANTOM = 1_000_000_001
A = ReplicaAssignment


def brokers(*ids: int, racks: str = "") -> list[BrokerRack]:
    return [BrokerRack(b, racks[i] if racks else None) for i, b in enumerate(ids)]


def replaced(
    assignments: dict[int, tuple[int, ...]],
    live: list[BrokerRack],
    *,
    loads: dict[int, int] | None = None,
    spare: tuple[BrokerRack, ...] = (),
    full: tuple[BrokerRack, ...] = (),
) -> dict[int, tuple[int, ...]]:
    changed = replace_replicas(
        {p: A(replicas) for p, replicas in assignments.items()},
        phantoms={PHANTOM},
        brokers=live,
        loads=loads or {},
        spare=spare,
        full=full,
    )
    assert not any(a.is_being_reassigned for a in changed.values())
    return {p: a.replicas for p, a in changed.items()}


def test_what_names_brokers_only_is_left_alone() -> None:
    assert replaced({0: (1, 2), 1: (2, 3)}, brokers(1, 2, 3)) == {}


def test_a_broker_takes_the_very_place() -> None:
    assert replaced({0: (1, PHANTOM, 3)}, brokers(1, 2, 3)) == {0: (1, 2, 3)}


def test_leaders_are_spread() -> None:
    found = replaced(dict.fromkeys(range(6), (PHANTOM,)), brokers(1, 2, 3))
    assert sorted(replicas[0] for replicas in found.values()) == [1, 1, 2, 2, 3, 3]


def test_what_hosts_least_of_the_topic_comes_first_and_then_of_the_cluster() -> None:
    live = brokers(1, 2, 3, 4)
    assert replaced({0: (1, 2), 1: (4, PHANTOM)}, live, loads={3: 9}) == {1: (4, 3)}
    assert replaced({0: (4, PHANTOM)}, live, loads={1: 5, 2: 3, 3: 9}) == {0: (4, 2)}


def test_a_rack_that_the_partition_lacks_is_preferred() -> None:
    live = brokers(1, 2, 3, racks="aab")
    assert replaced({0: (1, PHANTOM)}, live, loads={3: 100}) == {0: (1, 3)}


def test_a_full_set_of_racks_is_no_obstacle() -> None:
    assert replaced({0: (1, 3, PHANTOM)}, brokers(1, 2, 3, racks="aab")) == {0: (1, 3, 2)}


def test_if_all_live_brokers_host_it_already_one_that_is_down_gets_it() -> None:
    spare = (BrokerRack(3, None),)
    assert replaced({0: (PHANTOM, 1, 2)}, brokers(1, 2), spare=spare) == {0: (3, 1, 2)}


def test_without_any_further_broker_the_replica_is_dropped() -> None:
    assert replaced({0: (PHANTOM, 2, 1)}, brokers(1, 2)) == {0: (2, 1)}


def test_the_only_replica_stays_if_there_is_no_broker() -> None:
    assert replaced({0: (PHANTOM,)}, []) == {}


def test_a_partition_that_has_a_leader_gets_its_new_replica_by_a_reassignment() -> None:
    changed = replace_replicas(
        {
            0: A((1, PHANTOM)),
            1: A((2, PHANTOM, 1), adding_replicas=(PHANTOM,), removing_replicas=(1,)),
            2: A((1, 2, PHANTOM), removing_replicas=(PHANTOM,)),
            3: A((1, PHANTOM)),
        },
        phantoms={PHANTOM},
        brokers=brokers(1, 2, 3),
        loads={},
        unborn={3},
    )
    assert changed[0] == A((1, 3), adding_replicas=(3,))
    assert changed[1] == A((2, 3, 1), adding_replicas=(3,), removing_replicas=(1,))
    assert changed[2] == A((1, 2))
    assert changed[3] == A((1, 2))


@given(
    st.dictionaries(
        st.integers(0, 9),
        st.lists(st.sampled_from([1, 2, 3, 4, PHANTOM]), min_size=1, unique=True).map(tuple),
        min_size=1,
    ),
    st.sampled_from(["", "aabb", "abcd", "aaaa"]),
)
def test_no_phantom_no_broker_twice_and_as_many_replicas_as_there_can_be(
    assignments: dict[int, tuple[int, ...]], racks: str
) -> None:
    found = assignments | replaced(assignments, brokers(1, 2, 3, 4, racks=racks))
    for partition, replicas in found.items():
        before = assignments[partition]
        assert PHANTOM not in replicas
        assert len(set(replicas)) == len(replicas) == min(len(before), 4)
        kept = [replica for replica in before if replica != PHANTOM]
        assert [replica for replica in replicas if replica in kept] == kept


def test_the_rack_of_a_broker_that_gets_nothing_counts() -> None:
    live = brokers(1, 2, racks="ab")
    full = BrokerRack(3, "a")
    assert replaced({0: (PHANTOM, 3)}, live, full=(full,)) == {0: (2, 3)}
    assert replaced({0: (PHANTOM, 4)}, live, full=(full,)) == {0: (1, 4)}

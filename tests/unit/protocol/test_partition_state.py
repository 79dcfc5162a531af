"""Values of partitions with their bytes, made many at a time."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regent.model.partition import LeaderAndIsr, ReplicaAssignment
from regent.protocol import partition_state
from regent.protocol.partition_state import PartitionState, StateMaker, prefixes_of

LEADERSHIPS = [
    LeaderAndIsr(1, 0, (1, 2), 1, 0),
    LeaderAndIsr(1, 0, (1, 2), 1, 0),  # equal, and another object
    LeaderAndIsr(2, 5, (2,), 3, 9),
    LeaderAndIsr(1, 6, (1,), 3, 6, 1),
]
ASSIGNMENTS = [
    ReplicaAssignment((1, 2)),
    ReplicaAssignment((1, 2)),
    ReplicaAssignment((2, 1, 3), adding_replicas=(3,)),
]

partitions = st.lists(
    st.tuples(st.integers(0, 2**31 - 1), st.sampled_from(LEADERSHIPS), st.sampled_from(ASSIGNMENTS))
)


@given(calls=st.lists(partitions, max_size=5))
@pytest.mark.parametrize("kept", [0, 1, 1_000])
def test_values_are_those_that_are_made_and_encoded_one_by_one(
    calls: list[list[tuple[int, LeaderAndIsr, ReplicaAssignment]]], kept: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(partition_state, "_KEPT_AT_MOST", kept)
        maker = StateMaker()
        for call in calls:
            made = maker.make(*map(list, zip(*call, strict=True))) if call else []
            expected = [PartitionState(*each) for each in call]
            prefixes_of(expected, flexible=True)
            assert made == expected
            assert [(s.legacy, s.flexible, s.is_unusual) for s in made] == [
                (s.legacy, s.flexible, s.is_unusual) for s in expected
            ]

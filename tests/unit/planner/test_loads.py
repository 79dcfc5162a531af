"""Loads take the place of what a snapshot has; what is not known stays."""

from __future__ import annotations

import dataclasses

import numpy as np

from regent_rebalance.loads import Loads, with_loads
from regent_rebalance.ragged import ints
from regent_rebalance.snapshot import UNKNOWN
from tests.unit.planner.clusters import cluster


def test_known_loads_replace_and_unknown_ones_stay() -> None:
    own = cluster(["a", "b"], [[1, 2], [2, 1], [1]], sizes=[10, 20, 30])
    own = dataclasses.replace(own, bytes_in=ints([7, 8, UNKNOWN]))
    topics = [own.topics[topic] for topic in own.topic]
    numbers = own.partition.tolist()
    loads = Loads(
        [topics[1], "gone", topics[0]],
        [numbers[1], 0, numbers[0]],
        sizes=ints([500, 1, UNKNOWN]),
        bytes_in=ints([0, 1, 70]),
        bytes_out=ints([UNKNOWN, 1, 90]),
    )
    loaded, notes = with_loads(own, loads)
    assert loaded.sizes.tolist() == [10, 10, 500, 500, 30]
    assert loaded.bytes_in.tolist() == [70, 0, UNKNOWN]
    assert loaded.bytes_out.tolist() == [90, UNKNOWN, UNKNOWN]
    names = [own.name(index) for index in range(3)]
    assert notes == [
        f"the history has no {what} of {len(of)} of 3 partitions: they stay as they are in the "
        f"snapshot ({', '.join(of)})"
        for what, of in (
            ("size", [names[0], names[2]]),
            ("rate of bytes in", [names[2]]),
            ("rate of bytes out", [names[1], names[2]]),
        )
    ]
    assert np.array_equal(loaded.replicas, own.replicas)


def test_what_is_on_disks_now_counts_where_the_history_has_less() -> None:
    """Most of its history a log that grows was smaller: copying it takes what is there."""
    own = cluster(["a", "b"], [[1, 2]], sizes=[1_000])
    own = dataclasses.replace(own, sizes=ints([1_000, UNKNOWN]))
    unknown = ints([UNKNOWN])
    loads = Loads([own.topics[0]], [0], sizes=ints([7]), bytes_in=unknown, bytes_out=unknown)
    assert with_loads(own, loads)[0].sizes.tolist() == [1_000, 1_000]

"""What the search of a weighted plan works on: numbers that stay, and numbers that it changes.

A row is a partition that may move, a slot a place in it. Quantities are columns: first those that
each replica brings to its broker (``replica_loads``), then those that the leader alone brings
(``leader_loads``). Loads are integers in floats, below 2**53, so every sum is exact in any order.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from regent_rebalance.ragged import Bools, Ints

Floats = npt.NDArray[np.float64]


class Case(NamedTuple):
    """What stays as it is.

    Attributes:
        home: Row and slot: the broker at the start, -1 for none.
        led_by: The broker that leads each row at the start; the preferred one where nobody does.
        factor: Replicas that each row is to have.
        rack_limit: Replicas of each row that one rack may have.
        keep_crowds: Whether a rack may keep more of a row than that: as many as at the start.
        least_racks: Over how many racks each row stays spread; 0: as far as the limits go.
        topic: Topic of each row.
        replica_loads, leader_loads: Row and quantity.
        cost: What a new replica of each row costs.
        rack: Rack of each broker.
        racks: How many racks there are.
        keeps, takes: Brokers that may keep replicas, and those that may get new ones.
        least, most, capacity: Broker and quantity: soft limits and the hard one.
        middle, pull: Broker and quantity: where the load is best within limits, and how much the
            square of the distance from there costs.
        soft, hard: For each quantity the cost of a unit outside a limit of that kind.
        topic_least, topic_most: Replicas of each topic that a broker is to have.
        by_topic: Whether those limits count.
        topic_weight: The cost of a replica outside them.
        topic_strict: Whether no replica may go where a topic has its most already.
    """

    home: Ints
    led_by: Ints
    factor: Ints
    rack_limit: Ints
    keep_crowds: bool
    least_racks: Ints
    topic: Ints
    replica_loads: Floats
    leader_loads: Floats
    cost: Floats
    rack: Ints
    racks: int
    keeps: Bools
    takes: Bools
    least: Floats
    most: Floats
    capacity: Floats
    middle: Floats
    pull: Floats
    soft: Floats
    hard: Floats
    topic_least: Ints
    topic_most: Ints
    by_topic: bool
    topic_weight: float
    topic_strict: bool


class State(NamedTuple):
    """What the search changes.

    Attributes:
        replicas: Row and slot: the broker, -1 for none.
        leader: The slot that leads each row, -1 for none.
        load: Broker and quantity.
        price: The potential of each broker and quantity, in the case that the state is used with.
        first: What the first unit gains that a broker gets, by quantity and broker.
        reached: Scratch: a number for each broker.
        outside: Brokers that are outside a limit.
        lacks: Brokers that have less than the least of something.
        short: For each quantity how many brokers have less than the least.
        topic_count: Topic and broker; empty unless topics count.
        topic_short: For each topic how many brokers that may keep replicas have fewer of it than
            the least; empty unless topics count.
    """

    replicas: Ints
    leader: Ints
    load: Floats
    price: Floats
    first: Floats
    reached: Floats
    outside: Bools
    lacks: Bools
    short: Ints
    topic_count: npt.NDArray[np.int32]
    topic_short: Ints

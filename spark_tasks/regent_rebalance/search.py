"""Weighted plans: repairs first, then moves that gain most for their cost, the thresholds falling.

One order of rows, no clock: the same case has the same plan.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from regent_rebalance.case import Case, Floats, State
from regent_rebalance.kernel import (
    NOWHERE,
    count_leaders_and_topics,
    count_replicas,
    refresh,
)
from regent_rebalance.passes import (
    exchange_from,
    find_away,
    find_broken,
    find_leaders,
    lead_anew,
    repair,
    substitute,
    take_back,
)
from regent_rebalance.prices import Prices
from regent_rebalance.ragged import Bools, Ints, ints, inverse, offsets_of
from regent_rebalance.sweeps import BESIDES, find_worthwhile, sweep

_FALLING = (8, 4, 2.5, 1.6, 1.2, 0.9, 0.6, 0.3, 0.1, 0.02, 0.005)
"""Gain by cost that moves need, pass by pass."""

_REDUCED = ((0.05, 0.9), (0.2, 0.9), (np.inf, 0.0))
"""Reduced costs that moves may have, and the threshold at which the next one's turn is."""

_LEADING = (0.5, 0.25, 0.1, 0.05, 0.02, 0.01, 0.001)
_TRIED = 48
"""Replicas of a broker that an exchange looks at."""

_SHORT = 64
"""Brokers that are short: as many are asked one by one whether a replica could gain there."""

_SUBSTITUTES, _TURNS = 96, 8
"""Replicas of a broker that may move instead of one that has, and how often others are tried."""

_ROUNDS = 8


@dataclass(frozen=True, slots=True)
class Guide:
    """What dual prices tell the search. Any will do, good ones make better plans.

    Attributes:
        prices: Broker and replica quantity.
        saved: What the move of each replica from home saves at most, at those prices.
        paying: Places of replicas that pay at those prices, the best first.
    """

    prices: Floats
    saved: Floats
    paying: Ints

    @classmethod
    def of(cls, case: Case, prices: Prices) -> Guide:
        """What these prices tell of a case."""
        cost = np.maximum(case.cost, 1e-9)[:, None]
        saved = prices.saved(case)
        ratio = np.where(case.home < 0, 0.0, saved / cost).reshape(-1)
        pays = np.flatnonzero(ratio > 1.0)
        return cls(
            prices.of_brokers(),
            np.where(case.home < 0, 0.0, saved).reshape(-1),
            ints(pays[np.argsort(-ratio[pays], kind="stable")]),
        )


@dataclass(frozen=True, slots=True)
class Search:
    """A case with the orders in which its rows and replicas are looked at.

    Attributes:
        rows: All rows, shuffled.
        heaviest: All rows, the heaviest first.
        replicas: All places of replicas as row * slots + slot, shuffled.
        at_home: All places of replicas, shuffled, by the broker at the start; none of nobody.
        begins: Where those of each broker begin, and the end of the last.
    """

    case: Case
    rows: Ints
    heaviest: Ints
    replicas: Ints
    at_home: Ints
    begins: Ints

    @classmethod
    def of(cls, case: Case, shuffle: Ints) -> Search:
        """What can be said of a case before its prices are known.

        Args:
            shuffle: For each row its place in the order of the search, from 0 on.
        """
        slots = case.home.shape[1]
        rows = inverse(shuffle)
        places = ints((rows[:, None] * slots + np.arange(slots)).reshape(-1))
        at_home, begins = _by_broker(places, case.home.reshape(-1)[places], len(case.rack))
        kinds = case.replica_loads.shape[1]
        weight = (case.replica_loads * case.hard[:kinds]).sum(axis=1)
        weight += (case.leader_loads * case.hard[kinds:]).sum(axis=1)
        heaviest = rows[np.argsort(-weight[rows], kind="stable")]
        return cls(case, rows, heaviest, places, at_home, begins)

    def repaired(self) -> tuple[State, int]:
        """The state after repairs, and how many replicas found no broker."""
        case, state = self.case, start_state(self.case)
        self._lead(state, _LEADING[:1])
        missing = repair(case, state, self.heaviest[_broken(case, state)[self.heaviest]])
        self._lead(state, _LEADING[:3])
        return state, int(missing)

    def improve(self, state: State, guide: Guide) -> None:
        """Search on from the state after repairs."""
        case = self.case
        self._sweep(state, guide, guide.paying, 0.0, np.inf)
        for most_reduced, lowest in _REDUCED:
            self._substitute(state)
            for threshold in _FALLING:
                if threshold < lowest or not unsettled(case, state):
                    break
                self._sweep(state, guide, self.replicas, threshold, most_reduced)
                if lowest == 0.0:
                    self._lead(state, _LEADING[:2])
            self._lead(state, _LEADING)
        self._settle(state, guide)
        limits_only = case._replace(pull=np.zeros_like(case.pull))
        refresh(limits_only, state)
        take_back(limits_only, state, self.rows)

    def _settle(self, state: State, guide: Guide) -> None:
        """What is left outside: exchanges and single moves, until neither helps."""
        for _ in range(_ROUNDS):
            if not unsettled(self.case, state):
                return
            done = self._exchange(state) if state.outside.any() else 0
            done += self._sweep(state, guide, self.replicas, _FALLING[-1], np.inf)
            done += self._lead(state, _LEADING)
            if done == 0:
                return

    def _sweep(
        self, state: State, guide: Guide, order: Ints, threshold: float, most_reduced: float
    ) -> int:
        slopes = np.empty((state.load.shape[1], state.load.shape[0] + BESIDES))
        found = np.empty(state.replicas.size, dtype=np.bool_)
        short = np.empty(_SHORT, dtype=np.int64)
        limits = (threshold, most_reduced)
        prices = guide.prices
        find_worthwhile(self.case, state, *limits, prices, guide.saved, slopes, short, found)
        calm = np.empty(state.load.shape[1])
        return sweep(self.case, state, order, found, *limits, prices, calm)

    def _lead(self, state: State, thresholds: tuple[float, ...]) -> int:
        if self.case.leader_loads.shape[1] == 0:
            return 0
        return sum(self._lead_anew(state, each) for each in thresholds)

    def _lead_anew(self, state: State, threshold: float) -> int:
        worthwhile = np.empty(len(self.rows), dtype=np.bool_)
        if find_leaders(self.case, state, threshold, worthwhile) == 0:
            return 0
        return lead_anew(self.case, state, self.rows[worthwhile[self.rows]], threshold)

    def _substitute(self, state: State) -> None:
        """Let other replicas move than those that have, as long as that gains."""
        for turn in range(_TURNS):
            if not state.outside.any():
                return
            moved = self.replicas[_away(self.case, state)[self.replicas]]
            by_broker = (self.begins, self.at_home)
            if substitute(self.case, state, moved, *by_broker, _SUBSTITUTES, turn) == 0:
                return

    def _exchange(self, state: State) -> int:
        held = state.replicas.reshape(-1)[self.replicas]
        on_broker, begins = _by_broker(self.replicas, held, len(self.case.rack))
        limits_only = self.case._replace(pull=np.zeros_like(self.case.pull))
        refresh(limits_only, state)
        made = sum(
            exchange_from(limits_only, state, broker, begins, on_broker, _TRIED)
            for broker in np.flatnonzero(state.outside).tolist()
        )
        refresh(self.case, state)
        return made


def _by_broker(places: Ints, brokers: Ints, count: int) -> tuple[Ints, Ints]:
    """Places of replicas in order of their brokers, and where those of each broker begin.

    Args:
        brokers: Of each place; -1 for none.
    """
    order = np.argsort(brokers.astype(np.int16 if count < 1 << 15 else np.int64), kind="stable")
    begins = offsets_of(np.bincount(brokers[brokers >= 0], minlength=count))
    return places[order[len(order) - begins[-1] :]], begins


def unsettled(case: Case, state: State) -> bool:
    """Whether anything is outside its limits."""
    if state.outside.any():
        return True
    above = state.topic_count[:, case.keeps] > case.topic_most[: len(state.topic_count), None]
    below = state.topic_count[:, case.takes] < case.topic_least[: len(state.topic_count), None]
    return bool(above.any() or below.any())


def outside_by(case: Case, state: State) -> tuple[Floats, float]:
    """By how much soft limits are broken, for each quantity, and those of topics."""
    off = np.maximum(0.0, state.load - case.most) + np.maximum(0.0, case.least - state.load)
    topics = 0
    if case.by_topic:
        above = state.topic_count[:, case.keeps] - case.topic_most[:, None]
        below = case.topic_least[:, None] - state.topic_count[:, case.takes]
        topics = int(np.maximum(0, above).sum() + np.maximum(0, below).sum())
    return (off * case.soft).sum(axis=0), float(topics)


def above_capacity(case: Case, state: State) -> Floats:
    """By how much capacities are exceeded, for each quantity."""
    return np.asarray((np.maximum(0.0, state.load - case.capacity) * case.hard).sum(axis=0))


def spent(case: Case, state: State) -> float:
    """What the new replicas of a state cost."""
    new = _away(case, state).reshape(state.replicas.shape)
    return math.fsum((new.sum(axis=1) * case.cost).tolist())


def _away(case: Case, state: State) -> Bools:
    """For each replica, as row * slots + slot, whether it is new on its broker."""
    away = np.empty(state.replicas.size, dtype=np.bool_)
    find_away(case, state, away)
    return away


def leading(state: State) -> Ints:
    """The broker that leads each row; that of the first slot where nobody does."""
    return ints(state.replicas[np.arange(len(state.leader)), np.maximum(state.leader, 0)])


def needs_repair(case: Case, state: State) -> bool:
    """Whether replicas are lost, missing, too many, or crowded in racks."""
    return bool(_broken(case, state).any())


def _broken(case: Case, state: State) -> Bools:
    """For each row whether it needs repair."""
    broken = np.empty(len(case.factor), dtype=np.bool_)
    find_broken(case, state, broken)
    return broken


def start_state(case: Case) -> State:
    """The state that nothing has changed yet."""
    brokers, topics = len(case.rack), len(case.topic_most) if case.by_topic else 0
    load = np.zeros((brokers, case.replica_loads.shape[1] + case.leader_loads.shape[1]))
    state = State(
        replicas=case.home.copy(),
        leader=np.full(len(case.factor), NOWHERE, dtype=np.int64),
        load=load,
        price=np.empty_like(load),
        first=np.empty(load.shape[::-1]),
        reached=np.empty(brokers),
        outside=np.zeros(brokers, dtype=np.bool_),
        lacks=np.zeros(brokers, dtype=np.bool_),
        short=np.zeros(load.shape[1], dtype=np.int64),
        topic_count=np.zeros((topics, brokers), dtype=np.int32),
        topic_short=np.zeros(topics, dtype=np.int64),
    )
    count_replicas(case, state.load)
    count_leaders_and_topics(case, state)
    refresh(case, state)
    return state

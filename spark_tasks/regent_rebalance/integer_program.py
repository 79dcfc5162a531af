"""The best plan of a small cluster, by integer programming.

A search moves one replica at a time, or exchanges two. Where a broker has few replicas, and a large
one hardly fits between its limits, that ends well above the least cost. So the search's plan is
given to a solver (CP-SAT) that improves it, and mostly proves the result. It has a budget that is
no clock: the same input gives the same plan.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from regent_rebalance.case import Case, State
from regent_rebalance.ragged import Ints, ints
from regent_rebalance.search import leading, spent, start_state

MAX_CHOICES = 10_000
"""Partitions times brokers of the largest cluster that is given to the solver."""

_BUDGET = 3.0
"""Of the solver, in its own deterministic unit: some seconds."""

_SCALE = 1_000
"""Costs other than numbers of moves are counted in thousandths, rounded down."""

_ROUNDING = 1e-9
"""What two sums of the same costs may differ by."""


class Improved(NamedTuple):
    """What the solver has found.

    Attributes:
        state: Within the limits of the case; it costs no more than the one that was given.
        bound: What new replicas cost at least, within the limits of the case.
    """

    state: State
    bound: float


def improve(case: Case, state: State) -> Improved:
    """A state that costs less, if there is one and the solver finds it.

    The cost is that of new replicas; where it is the same, fewer new leaders are better, and
    fewer new replicas where not all cost the same.

    Args:
        case: With limits that the state keeps, and loads of which all together are exact.
    """
    # It takes most of a second to load, and larger plans do without.
    from ortools.sat.python import cp_model

    model = _Model(case, cp_model.CpModel())
    model.hint(state)
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.linearization_level = 2
    solver.parameters.max_deterministic_time = _BUDGET
    # Else an interrupt would end the search alone, and be forgotten.
    solver.parameters.catch_sigint_signal = False
    status = solver.solve(model.model)
    if status == cp_model.UNKNOWN:
        return Improved(state, 0.0)
    assert status in (cp_model.OPTIMAL, cp_model.FEASIBLE), solver.status_name(status)
    bound = max(0.0, (solver.best_objective_bound - model.slight) / model.step / model.scale)
    if solver.objective_value >= model.objective_of(state):
        return Improved(state, bound)
    found = model.state(solver)
    # Many costs that are rounded down can add up to more than one that hardly is.
    if spent(case, found) > spent(case, state) + _ROUNDING:
        return Improved(state, bound)
    return Improved(found, bound)


class _Model:
    """Variables and constraints.

    Attributes:
        scale: How much a cost of 1 counts, in steps.
        step: More than all that counts little, together.
        slight: How much that is at most: 1 for each new leader, and for each new replica unless
            that is its cost. One that costs nothing is not to move in vain.
    """

    def __init__(self, case: Case, model: Any) -> None:
        self.model = model
        rows = len(case.factor)
        only_moves = bool((case.cost == 1.0).all())
        self.scale = 1 if only_moves else _SCALE
        self.slight = rows if only_moves else rows + int(case.factor.sum())
        self.step = self.slight + 1
        self._case = case
        self._cost = ints(np.floor(case.cost * self.scale)) * self.step + int(not only_moves)
        self._replica: dict[tuple[int, int], Any] = {}
        self._leads: dict[tuple[int, int], Any] = {}
        self._home = _held(case.home, len(case.rack))
        for row in range(rows):
            self._add_row(row)
        self._limit_brokers()
        if case.by_topic:
            self._limit_topics()
        new = (
            self._cost[row] * variable
            for (row, broker), variable in self._replica.items()
            if not self._home[row, broker]
        )
        changed = (
            variable
            for (row, broker), variable in self._leads.items()
            if broker != case.led_by[row]
        )
        model.minimize(sum(new) + sum(changed))

    def hint(self, state: State) -> None:
        """Begin with a state."""
        held = _held(state.replicas, len(self._case.rack))
        leads = leading(state)
        for (row, broker), variable in self._replica.items():
            self.model.add_hint(variable, bool(held[row, broker]))
            self.model.add_hint(self._leads[row, broker], bool(leads[row] == broker))

    def objective_of(self, state: State) -> int:
        """What a state costs, as the solver counts."""
        new = _held(state.replicas, len(self._case.rack)) & ~self._home
        changed = leading(state) != self._case.led_by
        return int((new.sum(axis=1) * self._cost).sum()) + int(changed.sum())

    def state(self, solver: Any) -> State:
        """The state that the solver has found. Replicas that stay keep their slots."""
        case = self._case
        replicas = np.full_like(case.home, -1)
        led_by = np.full(len(case.factor), -1, dtype=np.int64)
        for row in range(len(case.factor)):
            chosen = [b for b in range(len(case.rack)) if self._chosen(solver, row, b)]
            kept = np.isin(case.home[row], chosen)
            replicas[row, kept] = case.home[row, kept]
            new = [b for b in chosen if not self._home[row, b]]
            replicas[row, np.flatnonzero(~kept)[: len(new)]] = new
        for (row, broker), variable in self._leads.items():
            if solver.value(variable):
                led_by[row] = broker
        return start_state(case._replace(home=replicas, led_by=led_by))

    def _chosen(self, solver: Any, row: int, broker: int) -> bool:
        variable = self._replica.get((row, broker))
        return variable is not None and bool(solver.value(variable))

    def _add_row(self, row: int) -> None:
        case, model = self._case, self.model
        usable = np.flatnonzero(case.keeps & (self._home[row] | case.takes)).tolist()
        for broker in usable:
            replica, leads = model.new_bool_var(""), model.new_bool_var("")
            model.add_implication(leads, replica)
            self._replica[row, broker], self._leads[row, broker] = replica, leads
        model.add(sum(self._replica[row, b] for b in usable) == int(case.factor[row]))
        model.add_exactly_one(self._leads[row, b] for b in usable)
        used = []
        for rack in range(case.racks):
            inside = [b for b in usable if case.rack[b] == rack]
            most = int(case.rack_limit[row])
            if case.keep_crowds:
                most = max(most, int(self._home[row, inside].sum()))
            if len(inside) > most:
                model.add(sum(self._replica[row, b] for b in inside) <= most)
            if case.least_racks[row] > 0 and inside:
                used.append(model.new_bool_var(""))
                model.add_bool_or(self._replica[row, b] for b in inside).only_enforce_if(used[-1])
        if used:
            model.add(sum(used) >= int(case.least_racks[row]))

    def _limit_brokers(self) -> None:
        case, kinds = self._case, self._case.replica_loads.shape[1]
        most = np.minimum(case.most, case.capacity)
        for k in range(case.least.shape[1]):
            borne = k < kinds
            variables = self._replica if borne else self._leads
            each = case.replica_loads[:, k] if borne else case.leader_loads[:, k - kinds]
            terms: list[list[Any]] = [[] for _ in range(len(case.rack))]
            for (row, broker), variable in variables.items():
                if each[row]:
                    terms[broker].append(int(each[row]) * variable)
            for broker, load in enumerate(terms):
                least = int(case.least[broker, k])
                self.model.add_linear_constraint(sum(load), least, int(most[broker, k]))

    def _limit_topics(self) -> None:
        case = self._case
        terms: dict[tuple[int, int], list[Any]] = {}
        for (row, broker), variable in self._replica.items():
            terms.setdefault((int(case.topic[row]), broker), []).append(variable)
        for (topic, broker), load in terms.items():
            least = int(case.topic_least[topic]) if case.takes[broker] else 0
            self.model.add_linear_constraint(sum(load), least, int(case.topic_most[topic]))


def _held(replicas: Ints, brokers: int) -> npt.NDArray[np.bool_]:
    """For each row and broker whether it has a replica."""
    held = np.zeros((len(replicas), brokers), dtype=np.bool_)
    row, slot = np.nonzero(replicas >= 0)
    held[row, replicas[row, slot]] = True
    return held

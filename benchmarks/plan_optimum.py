"""The best plan there is, by mixed-integer programming: exact, and for small clusters only.

A variable for each partition and broker says whether a replica is there, another whether the leader
is. Nothing of the planner's search or networks is used, but for the limits that goals set.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from ortools.linear_solver import pywraplp

from regent_rebalance.goals import RACK, TOPIC_DISTRIBUTION, Goals, topic_limits
from regent_rebalance.problem import Problem, problem_of
from regent_rebalance.quantities import quantities_of
from regent_rebalance.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class Optimum:
    """The fewest moves with which all goals are met, and with these the fewest new leaders.

    Attributes:
        moves, leader_changes: None if no plan meets all goals, or none was found in time.
        proved: Whether the solver has finished. If not, ``moves`` are those of the best plan that
            it has found. Its bound until then is no proof: it counts in floating point.
        cpu_s: What it took.
    """

    moves: int | None
    leader_changes: int | None
    proved: bool
    cpu_s: float


def optimum_of(snapshot: Snapshot, goals: Goals, *, timeout_s: float) -> Optimum:
    """Find the best plan."""
    model = _Model(snapshot, goals, problem_of(snapshot, goals))
    solver = model.solver
    solver.SetTimeLimit(round(timeout_s * 1000))
    before = time.process_time()
    status = solver.Solve()
    cpu_s = time.process_time() - before
    if status == pywraplp.Solver.INFEASIBLE:
        return Optimum(None, None, True, cpu_s)
    if status not in (pywraplp.Solver.OPTIMAL, pywraplp.Solver.FEASIBLE):
        return Optimum(None, None, False, cpu_s)
    moves, changes = (
        round(sum(variable.solution_value() for variable in variables))
        for variables in (model.moves, model.changes)
    )
    return Optimum(moves, changes, status == pywraplp.Solver.OPTIMAL, cpu_s)


class _Model:
    """The variables and constraints of one problem.

    Attributes:
        moves: Replicas where none is now.
        changes: Leaders that do not lead now.
    """

    def __init__(self, snapshot: Snapshot, goals: Goals, problem: Problem) -> None:
        self.solver: Any = pywraplp.Solver.CreateSolver("SCIP")
        self._snapshot, self._goals, self._problem = snapshot, goals, problem
        self._movable = {int(p): row for row, p in enumerate(problem.movable)}
        self._replica: dict[tuple[int, int], Any] = {}
        self._leader: dict[tuple[int, int], Any] = {}
        self.moves: list[Any] = []
        self.changes: list[Any] = []
        for partition in range(snapshot.partitions):
            self._add_partition(partition)
        self._limit_brokers()
        if goals.has(TOPIC_DISTRIBUTION):
            self._limit_topics()
        share = 1 / (1 + snapshot.partitions)
        self.solver.Minimize(self.solver.Sum(self.moves) + share * self.solver.Sum(self.changes))

    def _add_partition(self, partition: int) -> None:
        snapshot, problem, solver = self._snapshot, self._problem, self.solver
        begin, end = snapshot.offsets[partition : partition + 2]
        old = {int(broker) for broker in snapshot.replicas[begin:end]}
        row = self._movable.get(partition)
        usable = sorted(old) if row is None else [
            b for b in range(problem.brokers)
            if problem.keeps[b] and (b in old or problem.takes[b])
        ]  # fmt: skip
        leader = int(snapshot.leaders()[partition])
        factor = len(old) if row is None else int(problem.factor[row])
        for broker in usable:
            replica = solver.BoolVar(f"r{partition}_{broker}")
            leads = solver.BoolVar(f"l{partition}_{broker}")
            solver.Add(leads <= replica)
            self._replica[partition, broker] = replica
            self._leader[partition, broker] = leads
            if broker not in old:
                self.moves.append(replica)
            if broker != leader:
                self.changes.append(leads)
        solver.Add(solver.Sum(self._replica[partition, b] for b in usable) == factor)
        solver.Add(solver.Sum(self._leader[partition, b] for b in usable) == 1)
        if row is not None:
            self._spread(partition, usable, old, int(problem.rack_limits()[row]))

    def _spread(self, partition: int, usable: list[int], old: set[int], limit: int) -> None:
        for rack in range(self._problem.racks):
            in_rack = [b for b in usable if self._problem.rack[b] == rack]
            # Unless racks are to be repaired, those that share one may stay.
            crowd = 0 if self._goals.has(RACK) else len(old.intersection(in_rack))
            replicas = [self._replica[partition, b] for b in in_rack]
            self.solver.Add(self.solver.Sum(replicas) <= max(limit, crowd))

    def _limit_brokers(self) -> None:
        for quantity in quantities_of(self._snapshot, self._goals, self._problem):
            variables = self._leader if quantity.led else self._replica
            loads: list[list[Any]] = [[] for _ in range(self._problem.brokers)]
            for (partition, broker), variable in variables.items():
                loads[broker].append(int(quantity.each[partition]) * variable)
            most = np.minimum(quantity.most, quantity.capacity)
            for broker, terms in enumerate(loads):
                load = self.solver.Sum(terms)
                self.solver.Add(load >= int(quantity.least[broker]))
                self.solver.Add(load <= int(most[broker]))

    def _limit_topics(self) -> None:
        snapshot, problem = self._snapshot, self._problem
        loads: dict[tuple[int, int], list[Any]] = {}
        for (partition, broker), variable in self._replica.items():
            loads.setdefault((int(snapshot.topic[partition]), broker), []).append(variable)
        # Pinned topics do not count.
        totals = np.bincount(snapshot.topic[problem.movable], weights=problem.factor)
        keeping = int(problem.keeps.sum())
        for topic in np.flatnonzero(totals).tolist():
            least, most = topic_limits(int(totals[topic]), keeping, self._goals.topic_balance)
            for broker in np.flatnonzero(problem.keeps).tolist():
                load = self.solver.Sum(loads.get((topic, broker), []))
                self.solver.Add(load <= most)
                if problem.takes[broker]:
                    self.solver.Add(load >= least)

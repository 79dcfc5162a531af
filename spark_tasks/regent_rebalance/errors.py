"""Errors of the planner.

::

    PlannerError
    ├─ InvalidInputError        a snapshot, a plan or goals that cannot be: nothing is planned
    ├─ InfeasibleGoalsError     hard goals that no plan can meet; one sentence for each reason
    └─ SolverError              the solver returned no solution: a defect of this package
"""

from __future__ import annotations

from collections.abc import Sequence


class PlannerError(Exception):
    """Base of all errors of this package."""


class InvalidInputError(PlannerError):
    """Input that names no cluster, or contradicts itself. Names the thing, the value, a way out."""


class InfeasibleGoalsError(PlannerError):
    """No plan meets the hard goals.

    Attributes:
        reasons: One sentence each: which partition, rack or broker, and how much is missing.
    """

    def __init__(self, reasons: Sequence[str]) -> None:
        self.reasons = tuple(reasons)
        super().__init__("no plan meets the hard goals: " + "; ".join(self.reasons))


class SolverError(PlannerError):
    """The flow solver did not return an optimal solution of a network that has one."""

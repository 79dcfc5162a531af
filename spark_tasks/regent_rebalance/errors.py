"""Errors of the planner.

::

    PlannerError
    ├─ InvalidInputError        a snapshot, a plan or goals that cannot be: nothing is planned
    ├─ InfeasibleGoalsError     hard goals that no plan can meet; one sentence for each reason
    ├─ PackageMissingError      a package that only some plans need is not installed
    ├─ HistoryError             a history that cannot be used, or is too old
    ├─ SolverError              the solver returned no solution: a defect of this package
    └─ ExchangeError            Regent's exchange refuses, or does not answer
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


class ExchangeError(PlannerError):
    """Regent's exchange refuses a request, or does not answer, or there is no way to ask it."""


class HistoryError(PlannerError):
    """The history that is asked for cannot be used: nothing is planned without it."""


class PackageMissingError(PlannerError):
    """A package is not installed that the plan needs.

    Args:
        name: Of the package.
        why: Who needs it.
        extra: Of regent, with which it is installed.
    """

    def __init__(
        self, name: str, *, why: str = "a plan for these goals is searched", extra: str = "planner"
    ) -> None:
        super().__init__(f"{why}, and needs the package {name}: pip install 'regent[{extra}]'")

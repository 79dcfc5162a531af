"""Rebalance plans with proven bounds. Imports nothing of ``regent``: its image is another one.

A :class:`~regent_rebalance.snapshot.Snapshot` and :class:`~regent_rebalance.goals.Goals` go into
:func:`~regent_rebalance.planner.make_plan`; a :class:`~regent_rebalance.plan.Plan` comes out. The
data flow and the algorithms are described in ``docs/planner.md``.
"""

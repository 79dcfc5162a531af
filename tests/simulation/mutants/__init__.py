"""Deliberate defects of the core, by subject. Each must be caught, else the checkers are blind.

To add one: a function with the decorator ``defect`` in the module of its subject.
"""

from __future__ import annotations

from tests.simulation.mutants import (
    brokers,
    channels,
    elections,
    endpoint,
    leadership,
    reassignment,
    removals,
    shutdowns,
    standby,
    take_over,
    term,
    topics,
    trail,
)
from tests.simulation.mutants.registry import MUTANTS, Mutant

__all__ = [
    "MUTANTS",
    "Mutant",
    "brokers",
    "channels",
    "elections",
    "endpoint",
    "leadership",
    "reassignment",
    "removals",
    "shutdowns",
    "standby",
    "take_over",
    "term",
    "topics",
    "trail",
]

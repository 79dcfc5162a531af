"""What a task on an executor does. It loads little: the planner is a process of its own."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from regent_rebalance.candidates import Answer, make_answer


def answers_of(
    context: Any, snapshot: bytes, suffix: str, asked: Sequence[Sequence[str]]
) -> list[Answer]:
    """Plan of one snapshot with several sets of options, each in a task.

    Args:
        context: A SparkContext.
        suffix: Of the snapshot's name: ``.parquet`` if it is Parquet, else it is JSON.
        asked: Options of ``regent plan make``.

    Returns:
        The answers in the order of what was asked, whoever was ready first.

    Raises:
        Py4JJavaError: A task has failed.
    """
    shared = context.broadcast(snapshot)
    tasks = context.parallelize([list(each) for each in asked], len(asked))
    return [Answer(*each) for each in tasks.map(partial(_make, shared, suffix)).collect()]


def _make(shared: Any, suffix: str, options: list[str]) -> tuple[int, bytes, bytes]:
    answer = make_answer(shared.value, suffix, options)
    return answer.status, answer.output, answer.errors

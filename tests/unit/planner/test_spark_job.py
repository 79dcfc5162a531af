"""The driver's program of a planning job, without a Spark."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from regent_rebalance import spark_job
from regent_rebalance.history_wanted import Wanted

UI = "spark.ui.enabled"


class FakeContext:
    """A SparkContext of a JVM that knows what spark-submit was given."""

    given: Mapping[str, str] = {}
    conf: dict[str, str]

    @classmethod
    def getSystemProperty(cls, key: str) -> str | None:  # noqa: N802 - Spark's name
        return cls.given.get(key)

    @classmethod
    def getOrCreate(cls, conf: Any) -> FakeContext:  # noqa: N802 - Spark's name
        context = cls()
        # What the program sets counts more than what spark-submit was given.
        context.conf = {**cls.given, **dict(conf.getAll())}
        return context

    def stop(self) -> None:
        """Nothing is to be stopped."""


@pytest.fixture
def context(monkeypatch: pytest.MonkeyPatch) -> type[FakeContext]:
    class Context(FakeContext):
        """One for each test."""

    monkeypatch.setattr(spark_job, "SparkContext", Context)
    return Context


HISTORY = Wanted("file:///history", 1, 0.95, None, None)


@pytest.mark.parametrize(
    ("given", "history", "enabled"),
    [
        ({}, None, "false"),
        ({UI: "true"}, None, "true"),
        ({UI: "false"}, None, "false"),
        ({}, HISTORY, None),
        ({UI: "true"}, HISTORY, "true"),
    ],
)
def test_without_a_history_there_is_no_ui_unless_it_is_asked_for(
    context: type[FakeContext], given: dict[str, str], history: Wanted | None, enabled: str | None
) -> None:
    context.given = given
    with spark_job._context(history) as made:
        assert made.conf.get(UI) == enabled

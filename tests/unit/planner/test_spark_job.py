"""The driver's program of a planning job, without a Spark."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

import pytest
from click.testing import CliRunner
from py4j.protocol import Py4JError, Py4JNetworkError

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


class EndedContext(FakeContext):
    """A SparkContext whose JVM has ended: the first call may be under way then, others come after.

    Attributes:
        first: What the first call raises.
    """

    first: Exception = ConnectionRefusedError(111, "Connection refused")

    @property
    def _jvm(self) -> Any:
        raise self.first

    def stop(self) -> None:
        raise ConnectionRefusedError(111, "Connection refused")


@pytest.fixture
def spark_job() -> Any:
    """The program. Importing PySpark takes half a second: the collection of tests does without."""
    return importlib.import_module("regent_rebalance.spark_job")


@pytest.fixture
def context(monkeypatch: pytest.MonkeyPatch, spark_job: Any) -> type[FakeContext]:
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
    spark_job: Any,
    context: type[FakeContext],
    given: dict[str, str],
    history: Wanted | None,
    enabled: str | None,
) -> None:
    context.given = given
    with spark_job._context(history) as made:
        assert made.conf.get(UI) == enabled


FILES = ["--snapshot", "file:///snapshot.json", "--plan", "file:///plan.json"]


@pytest.mark.parametrize(
    "raised",
    [
        ConnectionRefusedError(111, "Connection refused"),
        Py4JNetworkError("Answer from Java side is empty"),
        # Py4J makes this of a connection that is reset during a call.
        Py4JError("An error occurred while calling o1.copyToLocalFile"),
    ],
)
def test_a_jvm_that_has_ended_is_named(
    spark_job: Any, monkeypatch: pytest.MonkeyPatch, raised: Exception
) -> None:
    monkeypatch.setattr(spark_job, "SparkContext", EndedContext)
    monkeypatch.setattr(EndedContext, "first", raised)
    done = CliRunner().invoke(spark_job.main, FILES)
    assert done.exit_code == 1
    assert done.output == (
        "Error: file:///plan.json cannot be reached: Spark's JVM has ended, as it does for want of "
        "memory\n"
    )


def test_a_jvm_that_ends_while_plans_are_made_is_named(
    spark_job: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ended(*_: Any) -> Any:
        raise Py4JError("An error occurred while calling z:PythonRDD.collectAndServe")

    monkeypatch.setattr(spark_job, "SparkContext", EndedContext)
    monkeypatch.setattr(spark_job, "check_file_system", lambda *_: None)
    monkeypatch.setattr(spark_job, "read", lambda *_: b"{}")
    monkeypatch.setattr(spark_job, "answers_of", ended)
    done = CliRunner().invoke(spark_job.main, FILES)
    assert done.output == "Error: Spark's JVM has ended, as it does for want of memory\n"

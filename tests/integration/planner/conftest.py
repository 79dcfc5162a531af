"""A Spark of this machine, one for all tests of a worker."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.integration.planner.short_jvm import SHORT_JVM


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    session = (
        SparkSession.builder.master("local[2]")
        .appName("regent-tests")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.extraJavaOptions", SHORT_JVM)
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.sql.shuffle.partitions", "4")
        .getOrCreate()
    )
    yield session
    session.stop()

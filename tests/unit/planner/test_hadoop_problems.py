"""What is said of a file that Hadoop cannot copy, without a Spark."""

from __future__ import annotations

import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn

import pytest
from py4j.protocol import Py4JJavaError

from regent_rebalance.errors import InvalidInputError
from regent_rebalance.hadoop_files import read, write

FULL = "org.apache.hadoop.fs.FSError: java.io.IOException: No space left on device"


class Refusing:
    """A SparkContext whose JVM answers each call with an exception."""

    @property
    def _jvm(self) -> NoReturn:
        said: Any = SimpleNamespace(toString=lambda: FULL, _target_id="o1")
        raise Py4JJavaError("a call", said)


def test_a_disk_that_is_full_is_said_with_the_folder_that_needs_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with pytest.raises(InvalidInputError) as unread:
        read(Refusing(), "s3://bucket/snapshot.json")
    assert str(unread.value) == (
        f"s3://bucket/snapshot.json cannot be read: {FULL}: make room in {tmp_path}, or name "
        "another folder (TMPDIR)"
    )
    with pytest.raises(InvalidInputError) as unwritten:
        write(Refusing(), "file:///plan.json", b"a plan")
    assert str(unwritten.value) == f"file:///plan.json cannot be written: {FULL}"

"""Files of Hadoop's file systems, as a Spark of this machine has them."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pytest

from regent_rebalance.errors import InvalidInputError
from regent_rebalance.hadoop_files import check_file_system, read, write

pytestmark = [pytest.mark.integration]


def test_a_temporary_folder_of_any_name_serves(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "a b%41"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    url = (tmp_path / "plan.json").as_uri()
    write(spark.sparkContext, url, b"one")
    write(spark.sparkContext, url, b"another")
    assert read(spark.sparkContext, url) == b"another"
    assert not list(folder.iterdir())


def test_nothing_is_written_into_a_folder(spark: Any, tmp_path: Path) -> None:
    url = tmp_path.as_uri()
    with pytest.raises(InvalidInputError, match="is a folder: give the plan's own URL"):
        check_file_system(spark.sparkContext, url)
    with pytest.raises(InvalidInputError, match="is a folder: give the plan's own URL"):
        write(spark.sparkContext, url, b"a plan")
    assert not list(tmp_path.iterdir())


def test_without_a_temporary_folder_that_is_said(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setattr(tempfile, "_candidate_tempdir_list", lambda: [str(tmp_path / "none")])
    with pytest.raises(InvalidInputError, match=r"No usable temporary directory.*\(TMPDIR\)"):
        write(spark.sparkContext, (tmp_path / "plan.json").as_uri(), b"a plan")

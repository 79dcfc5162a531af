"""Regent as a process of the sandbox, as far as it need not run."""

from __future__ import annotations

import contextlib
from pathlib import Path

from sandbox.regent_process import RegentProcess


def test_half_a_line_of_a_log_is_no_entry_yet(tmp_path: Path) -> None:
    with contextlib.closing(RegentProcess(zookeeper="none:1", state=tmp_path)) as regent:
        assert regent.log_entries() == []
        regent.log_path.parent.mkdir(parents=True, exist_ok=True)
        regent.log_path.write_text('{"message": "one"}\nTraceback\n{"message": "two"}\n{"mess')
        assert [entry["message"] for entry in regent.log_entries()] == ["one", "two"]

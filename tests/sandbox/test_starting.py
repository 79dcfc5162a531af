"""Servers start one after the other where the machine has few processors."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest

from sandbox.starting import free_permit


def test_there_are_as_many_permits_as_processors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))  # other tests hold permits, too
    held = [free_permit() for _ in range(os.cpu_count() or 1)]
    assert None not in held
    assert free_permit() is None
    first = held[0]
    assert first is not None
    first.release()
    assert free_permit() is not None

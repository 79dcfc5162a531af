"""What ZooKeeper refuses to write is logged, and not for each of many attempts."""

from __future__ import annotations

import pytest

from regent.model.entry_budget import ENTRIES, WINDOW_S
from regent.zk_data.operations import SetData, Written, ZkError
from regent.zookeeper.writes import RefusalLog


def test_refusals_are_logged_a_few_times_a_minute(caplog: pytest.LogCaptureFixture) -> None:
    now = [100.0]
    log = RefusalLog(clock=lambda: now[0])
    operations = [SetData("/a", b""), SetData("/b", b""), SetData("/c", b"")]
    for _ in range(500):
        log.note(operations, [ZkError.NO_AUTH, Written(1), ZkError.NO_AUTH])
    log.note(operations[:1], [ZkError.QUOTA_EXCEEDED])
    now[0] += WINDOW_S
    log.note(operations[:1], [ZkError.NO_AUTH])
    found = [(r.message, vars(r)["paths"], vars(r)["entries_left_out"]) for r in caplog.records]
    no_right = "No right to write znodes"
    assert found == [
        *[(no_right, ["/a", "/c"], 0)] * ENTRIES,
        ("A ZooKeeper quota does not allow to write znodes", ["/a"], 0),
        (no_right, ["/a"], 500 - ENTRIES),
    ]

"""kopf is started in the surroundings that a container gives it."""

from __future__ import annotations

import asyncio
import getpass

import pytest

from regent.kube.kopf_runner import KopfOptions, run_kopf


async def test_the_user_of_the_process_needs_no_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """The image's user is a number that `/etc/passwd` does not have."""

    def nameless() -> str:
        raise KeyError("getpwuid(): uid not found: 65532")

    monkeypatch.setattr(getpass, "getuser", nameless)
    monkeypatch.delenv("POD_ID", raising=False)
    over = asyncio.get_running_loop().create_future()
    options = KopfOptions(kinds=(), on_event=lambda *_: None, on_signal=lambda: None)
    running = asyncio.create_task(run_kopf(options, namespaces=("default",), until=(over,)))
    over.set_result(None)
    await running

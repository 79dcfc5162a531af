"""``test_crash_everywhere.py`` for what brokers ask: a file of its own, to run beside it."""

from __future__ import annotations

import pytest

from tests.simulation.cutting import failures_of_cuts
from tests.simulation.endpoint_scenarios import ENDPOINT_SCENARIOS
from tests.support.soak import EVERYWHERE


@pytest.mark.parametrize("everywhere", EVERYWHERE)
@pytest.mark.parametrize("rivals", [False, True], ids=["a fresh Regent", "a broker meanwhile"])
@pytest.mark.parametrize("name", ENDPOINT_SCENARIOS)
def test_whatever_is_cut_short_is_put_right(name: str, rivals: bool, everywhere: bool) -> None:
    failures = failures_of_cuts(
        name, ENDPOINT_SCENARIOS[name], rivals=rivals, everywhere=everywhere
    )
    assert not failures, "\n".join(failures)

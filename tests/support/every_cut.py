"""``--every-cut``: stories of the simulation are cut short everywhere (``make cuts``, some ten
minutes of two processors). Without it each is cut at a sample of its effects.

Registered by ``tests/conftest.py``.
"""

from __future__ import annotations

import pytest

_OPTION = "--every-cut"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        _OPTION,
        action="store_true",
        help="cut stories of the simulation short at every effect, not at a sample of them",
    )


@pytest.fixture(scope="session")
def every_cut(pytestconfig: pytest.Config) -> bool:
    """Whether all cuts are to be played."""
    return bool(pytestconfig.getoption(_OPTION))

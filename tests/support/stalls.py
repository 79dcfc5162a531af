"""``--stalls SEED``: tests and Regents run with random stalls (`sandbox.stalls`).

Registered by ``tests/conftest.py``.
"""

from __future__ import annotations

import os

import pytest

from sandbox import stalls


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--stalls",
        type=int,
        metavar="SEED",
        help="let event loops and threads of tests and Regents wait now and then",
    )


def pytest_configure(config: pytest.Config) -> None:
    seed = config.getoption("--stalls")
    if seed is not None:
        os.environ[stalls.SEED_VARIABLE] = str(seed)
        stalls.install_from_environment()

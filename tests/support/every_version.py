"""``--every-version``: tests of which a sample of versions runs otherwise are run with brokers of
the others, too (``make versions``).

Registered by ``tests/conftest.py``.
"""

from __future__ import annotations

from typing import Any, Final

import pytest

_OPTION: Final = "--every-version"
_MARK: Final = pytest.mark.every_version


def versions(*sample: str, others: tuple[str, ...]) -> list[Any]:
    """Parameters of a test or a fixture: versions that always run, and those that run if asked."""
    return [*sample, *(pytest.param(version, marks=_MARK) for version in others)]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        _OPTION, action="store_true", help="tests of all versions of Kafka, not of a sample of them"
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption(_OPTION):
        return
    left_out = [item for item in items if item.get_closest_marker(_MARK.name) is not None]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item.get_closest_marker(_MARK.name) is None]

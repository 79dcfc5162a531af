"""Environment variables with Regent's prefix that are no settings: most often a misspelled name."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from typing import Final

from regent.settings.process import ENVIRONMENT_PREFIX, Settings

_OF_COMMANDS: Final = frozenset({f"{ENVIRONMENT_PREFIX}SAMPLE_RETENTION"})
"""Of commands other than ``regent run``; one environment may serve all of them."""

_OF_A_SERVICE: Final = re.compile(
    r"_(?:SERVICE_(?:HOST|PORT(?:_\w+)?)|PORT(?:_\d+_(?:TCP|UDP|SCTP)(?:_(?:PROTO|PORT|ADDR))?)?)$"
)
"""Kubernetes sets these in a pod for each Service of its namespace, for instance for one that is
called ``regent`` (``enableServiceLinks``)."""


def unknown_variables(names: Iterable[str]) -> dict[str, str | None]:
    """Which of these names are meant for Regent and have no effect.

    Returns:
        Each with the most similar name that has an effect, None if none is similar; sorted.
    """
    known = {field.upper() for field in Settings.model_fields}
    similar: dict[str, str | None] = {}
    for name in sorted(names):
        upper = name.upper()  # pydantic-settings ignores the case
        if not upper.startswith(ENVIRONMENT_PREFIX) or _OF_A_SERVICE.search(upper):
            continue
        setting = upper.removeprefix(ENVIRONMENT_PREFIX)
        if setting in known or upper in _OF_COMMANDS:
            continue
        closest = next(iter(difflib.get_close_matches(setting, known, n=1)), None)
        similar[name] = closest and f"{ENVIRONMENT_PREFIX}{closest}"
    return similar

"""Values as Java parses them.

Python's own parsers accept more than Java's (digits and blanks of other scripts, underscores) and
less (``0x1p-3``, ``1d``); a value has to mean the same to Regent and to the brokers. ``ConfigDef``
trims with ``String.trim``, which removes the characters up to U+0020 and no others.

In one thing Java is wider, on purpose not followed: ``Integer.parseInt`` reads decimal digits of
any script. Which those are depends on the release of Java.
"""

from __future__ import annotations

import math
import re
from typing import Final

INT_MAX: Final = 2**31 - 1
LONG_MAX: Final = 2**63 - 1

MAX_DIGITS: Final = 20
"""Enough for every long; Python's ``int`` takes quadratic time for endless texts."""

MAX_DOUBLE_LENGTH: Final = 400

_TRIMMED: Final = "".join(map(chr, range(0x21)))
_WHOLE_NUMBER: Final = re.compile(rf"[+-]?[0-9]{{1,{MAX_DIGITS}}}")
_DECIMAL: Final = re.compile(r"([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)[fFdD]?")
_HEXADECIMAL: Final = re.compile(
    r"([+-]?0[xX](?:[0-9a-fA-F]+\.?|[0-9a-fA-F]*\.[0-9a-fA-F]+)[pP][+-]?[0-9]+)[fFdD]?"
)
_SEPARATOR: Final = re.compile(r"[ \t\n\x0b\f\r]*,[ \t\n\x0b\f\r]*")


def trim(text: str) -> str:
    """``String.trim``."""
    return text.strip(_TRIMMED)


def parse_int(text: str) -> int | None:
    """An INT, None if it is none."""
    return _parse_whole_number(text, INT_MAX)


def parse_long(text: str) -> int | None:
    """A LONG, None if it is none."""
    return _parse_whole_number(text, LONG_MAX)


def parse_double(text: str) -> float | None:
    """A DOUBLE, None if it is none or not a finite number.

    Java reads ``NaN`` and ``Infinity``, too, and lets NaN pass every range; no setting means that.
    """
    trimmed = trim(text)
    if len(trimmed) > MAX_DOUBLE_LENGTH:
        return None
    decimal = _DECIMAL.fullmatch(trimmed)
    if decimal is not None:
        number = float(decimal[1])
        return number if math.isfinite(number) else None
    hexadecimal = _HEXADECIMAL.fullmatch(trimmed)
    if hexadecimal is None:
        return None
    try:
        return float.fromhex(hexadecimal[1])
    except OverflowError:
        return None


def parse_boolean(text: str) -> bool | None:
    """A BOOLEAN, None if it is none. Letters count in either case."""
    return {"true": True, "false": False}.get(trim(text).lower())


def parse_list(text: str) -> tuple[str, ...]:
    """A LIST: separated by commas, with blanks around them. An empty text has no entries."""
    trimmed = trim(text)
    return tuple(_SEPARATOR.split(trimmed)) if trimmed else ()


def _parse_whole_number(text: str, largest: int) -> int | None:
    trimmed = trim(text)
    if _WHOLE_NUMBER.fullmatch(trimmed) is None:
        return None
    number = int(trimmed)
    return number if -largest - 1 <= number <= largest else None

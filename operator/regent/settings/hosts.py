"""Hosts under which others are to reach this process."""

from __future__ import annotations

import ipaddress
import re
from typing import Final

_NAME: Final = re.compile(r"[^\s:/\\@,;\[\]]{1,253}")


def host_of_others(text: str) -> str:
    """The text, if it has the form of what others connect to: a name, or an address without
    brackets.

    Raises:
        ValueError: It has not.
    """
    try:
        ipaddress.ip_address(text)
    except ValueError:
        if _NAME.fullmatch(text) is None:
            raise ValueError(
                f"{text!r} is neither the name of a host nor an address (without brackets)"
            ) from None
    return text

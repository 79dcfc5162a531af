"""Hosts under which others are to reach this process."""

from __future__ import annotations

import ipaddress
import re
from typing import Annotated, Final

from pydantic import AfterValidator, WithJsonSchema

_NAME: Final = r"[^\s:/\\@,;\[\]]{1,253}"
_IPV6: Final = r"([0-9a-fA-F:]*::|([0-9a-fA-F]{1,4}:){6})[0-9a-fA-F:.]*(%[^\s/\[\]]+)?"

HOST_PATTERN: Final = f"^({_NAME}|{_IPV6})$"
"""The form of a name or an address, for a JSON schema."""


def host_of_others(text: str) -> str:
    """The text, if it has the form of what others connect to: a name, or an address without
    brackets.

    Raises:
        ValueError: It has not.
    """
    try:
        ipaddress.ip_address(text)
    except ValueError:
        if re.fullmatch(_NAME, text) is None:
            raise ValueError(
                f"{text!r} is neither the name of a host nor an address (without brackets)"
            ) from None
    return text


HostOfOthers = Annotated[
    str,
    AfterValidator(host_of_others),
    WithJsonSchema({"type": "string", "pattern": HOST_PATTERN}),
]

"""Names of namespaces, as Kubernetes has them."""

from __future__ import annotations

import re
from typing import Final

_NAMESPACE: Final = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", re.ASCII)
"""A label of DNS (RFC 1123)."""


def namespace_name(text: str) -> str:
    """The text, if a namespace can have it as its name. An empty one would mean all namespaces.

    Raises:
        ValueError: It cannot.
    """
    if _NAMESPACE.fullmatch(text) is None:
        raise ValueError(f"{text!r} is not a namespace: lower case letters, digits, '-', up to 63")
    return text

"""Settings that are lists, as one text."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import WithJsonSchema


def _shaped(pattern: str) -> WithJsonSchema:
    """The form of a text in the chart's schema: Helm refuses then what Regent would at its start.
    The validators of the settings say in words what is wrong."""
    return WithJsonSchema({"type": "string", "pattern": f"^{pattern}$"})


ListenerAddress = Annotated[
    str,
    _shaped(r"[^\s:/]+://(\[[0-9a-fA-F:.]+\]|[^\s:/\[\]]*):[0-9]{1,5}"),
]
Principal = Annotated[str, _shaped("[^:]+:.+")]
TopicNameRuleText = Annotated[
    str,
    _shaped(r"\s*[-a-z0-9*]+\s*=\s*([a-zA-Z0-9._*-]|\{namespace\})+\s*"),
]


def parts(value: Any, separator: str) -> Any:
    """Parts of a text without the space around them; anything else is left alone."""
    if isinstance(value, str):
        return tuple(part.strip() for part in value.split(separator) if part.strip())
    return value

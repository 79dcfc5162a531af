"""Settings that are lists, as one text."""

from __future__ import annotations

from typing import Annotated, Any, Final

from pydantic import WithJsonSchema


def _shaped(pattern: str, **further: Any) -> WithJsonSchema:
    """The form of a text in the chart's schema: Helm refuses then what Regent would at its start.
    The validators of the settings say in words what is wrong.

    Args:
        further: Other keywords of the schema.
    """
    return WithJsonSchema({"type": "string", "pattern": f"^{pattern}$", **further})


_PORT: Final = "([0-9]{1,4}|[0-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5])"

ListenerAddress = Annotated[
    str,
    _shaped(rf"[^\s:/]+://(\[[0-9a-fA-F:.]+\]|[^\s:/\[\]]*):{_PORT}"),
]
PodLabel = Annotated[str, _shaped(r"[^=\s]+=[^=\s]*")]
Principal = Annotated[str, _shaped("[^:]+:.+")]
TopicNameRuleText = Annotated[
    str,
    _shaped(r"\s*[-a-z0-9*]+\s*=\s*([a-zA-Z0-9._*-]|\{namespace\})+\s*"),
]


WorkspaceUrl = Annotated[
    str,
    _shaped(
        r"[a-z][a-z0-9+.-]*:/[^\s%?#\\,]*",
        # folders called . or .., and a password
        **{"not": {"pattern": r":.*/\.\.?(/|$)|^[^/]*//[^/@]*:[^/]*@"}},
    ),
]


def parts(value: Any, separator: str) -> Any:
    """Parts of a text without the space around them; anything else is left alone."""
    if isinstance(value, str):
        return tuple(part.strip() for part in value.split(separator) if part.strip())
    return value

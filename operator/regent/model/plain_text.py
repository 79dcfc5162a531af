"""Text of others, to be shown."""

from __future__ import annotations


def plain(text: str) -> str:
    """Text from znodes, clients and other servers in one line, without what a terminal takes for a
    command."""
    if text.isprintable():
        return text
    return "".join(
        c if c.isprintable() else c.encode("unicode_escape", "surrogatepass").decode() for c in text
    )

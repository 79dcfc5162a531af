"""Folders for drivers' copies of snapshots and plans (``spec.rebalance.spark.workspace``).

A snapshot describes the whole cluster, also the topics of other namespaces. So the administrator
chooses the folders, and a resource names one of them or a folder below.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Self

from regent_rebalance.secret_urls import shown

_URL: Final = re.compile(
    r"(?P<scheme>[a-z][a-z0-9+.-]*):(?=/)(?://(?P<authority>[^/]*))?(?P<path>.*)"
)
_PASSWORD: Final = re.compile(r"[^@]*:.*@")
_AMBIGUOUS: Final = re.compile(r"[%?#\\\s]")
"""File systems disagree about the meaning of these characters in a path."""


@dataclass(frozen=True, slots=True)
class FolderUrl:
    """The URL of a folder, in parts that can be compared.

    Attributes:
        scheme: ``s3a`` also for ``s3``, as drivers take the one for the other.
        authority: A bucket, or host and port; "" if the URL has none.
        path: Names of folders, the outermost first.
    """

    scheme: str
    authority: str
    path: tuple[str, ...]

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read a URL.

        Raises:
            ValueError: The text is no such URL, has a password, or can be read in two ways.
        """
        match = _URL.fullmatch(text)
        if match is None or not text.isprintable():
            raise ValueError(f"{shown(text)!r} is no URL of a folder, such as s3a://bucket/plans")
        authority = match["authority"] or ""
        if _PASSWORD.match(authority):
            raise ValueError(
                f"{shown(text)!r} has a password: leave it out; drivers have their own credentials"
            )
        names = tuple(name for name in match["path"].split("/") if name)
        if _AMBIGUOUS.search(text) or not {".", ".."}.isdisjoint(names):
            raise ValueError(
                f"{shown(text)!r} is ambiguous: write it without '.' and '..' as names of folders, "
                "and without '%', '?', '#', '\\' and white space"
            )
        scheme = match["scheme"]
        return cls("s3a" if scheme == "s3" else scheme, authority, names)

    def is_within(self, other: FolderUrl) -> bool:
        """Whether this folder is the other one, or below it."""
        return (self.scheme, self.authority, self.path[: len(other.path)]) == (
            other.scheme,
            other.authority,
            other.path,
        )


def workspace_problem(workspace: str, allowed: Iterable[str]) -> str | None:
    """Return why a resource may not have copies kept in a folder; None: it may.

    Args:
        allowed: URLs that :meth:`FolderUrl.parse` can read.
    """
    folders = {url: FolderUrl.parse(url) for url in allowed}
    try:
        wanted = FolderUrl.parse(workspace)
    except ValueError as error:
        return str(error)
    if any(map(wanted.is_within, folders.values())):
        return None
    named = ", ".join([*map(shown, folders), "and folders below"]) if folders else "nothing"
    return f"{shown(workspace)!r} is not allowed: Regent's setting spark_workspaces allows {named}"

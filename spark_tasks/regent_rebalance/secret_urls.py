"""URLs of object stores as messages may show them: without the credentials that are in them."""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import unquote

_HIDDEN: Final = "***"

_PASSWORD: Final = re.compile(r"(^[a-z][a-z0-9+.-]*://[^:@/?]*:)(.*)(?=@)", re.IGNORECASE)
"""Up to the last ``@``: a secret that was not quoted has any characters."""

_OPTION: Final = re.compile(r"([?&]([^=&\s]+)=)([^&\s'\",;]*)")
_HARMLESS: Final = frozenset({"endpoint_override", "region", "scheme"})
_IN_TEXT: Final = re.compile(r"[a-z][a-z0-9+.-]*://[^\s'\",;]+", re.IGNORECASE)

_LEAST: Final = 4
"""A shorter secret is not looked for outside URLs: it may be part of any word."""


def shown(url: str) -> str:
    """A URL with ``***`` for its password, and for the values of options that may be secret."""
    return _OPTION.sub(_shown_option, _PASSWORD.sub(rf"\g<1>{_HIDDEN}", url))


def masked(text: str, url: str | None = None) -> str:
    """A message of a library without the credentials of the URLs in it.

    Args:
        url: The URL that the message is about. Its secrets are not shown in any other form either.
    """
    if url is not None and "://" in url:
        # With another scheme, or a path below it.
        for whole in (url, url.partition("?")[0].rstrip("/")):
            text = text.replace(whole.partition("://")[2], shown(whole).partition("://")[2])
        for secret in _secrets(url):
            text = text.replace(secret, _HIDDEN)
    return _IN_TEXT.sub(lambda found: shown(found[0]), text)


def _shown_option(found: re.Match[str]) -> str:
    return found[0] if found[2].lower() in _HARMLESS else f"{found[1]}{_HIDDEN}"


def _secrets(url: str) -> list[str]:
    """The longest first: one may be part of another."""
    password = _PASSWORD.match(url)
    found = [] if password is None else [password[2]]
    found += [option[3] for option in _OPTION.finditer(url) if option[2].lower() not in _HARMLESS]
    forms = {form for secret in found for form in (secret, unquote(secret)) if len(form) >= _LEAST}
    return sorted(forms, key=lambda form: (-len(form), form))

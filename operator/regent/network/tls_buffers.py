"""How much memory asyncio takes for each TLS connection."""

from __future__ import annotations

from asyncio import sslproto
from typing import Final

READ_BYTES: Final = 16 * 1024
"""The largest record of TLS: more is never decrypted at a time."""


def keep_tls_buffers_small() -> None:
    """Have asyncio read the bytes of a TLS connection into a small buffer, in the whole process.

    It keeps one of 256 KiB for each connection from its beginning on, also while that is silent or
    has not said a byte: some thousand clients would take more memory than a process may have.
    """
    sslproto.SSLProtocol.max_size = READ_BYTES

"""What a child process says, within bounds: its memory is bounded, and so is what it has this
process hold."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Final, NamedTuple

ERRORS_MAX: Final = 1024**2
"""Bytes of standard error that are kept: the last ones."""

_CHUNK: Final = 64 * 1024


class ProcessOutput(NamedTuple):
    """What a process has said until its end.

    Attributes:
        output: Its standard output; None: it was too much, and the process was killed.
        errors: The end of its standard error.
    """

    output: bytes | None
    errors: bytes


async def talk(process: asyncio.subprocess.Process, said: bytes, *, limit: int) -> ProcessOutput:
    """Give a process its standard input, and wait for its end.

    Args:
        process: All three streams are pipes.
        limit: Bytes of standard output that it may write.
    """
    assert process.stdout is not None, "it is a pipe"
    assert process.stderr is not None, "it is a pipe"
    _, output, errors = await asyncio.gather(
        _feed(process, said),
        _read(process, process.stdout, limit=limit),
        _read_end(process.stderr),
    )
    await process.wait()
    return ProcessOutput(output, errors)


async def _feed(process: asyncio.subprocess.Process, said: bytes) -> None:
    stdin = process.stdin
    assert stdin is not None, "it is a pipe"
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # it need not read it
        stdin.write(said)
        await stdin.drain()
    stdin.close()


async def _read(
    process: asyncio.subprocess.Process, stream: asyncio.StreamReader, *, limit: int
) -> bytes | None:
    """All that is written. The rest of what is too much is read, too: a pipe that nobody reads
    would hold up the end of the process."""
    chunks: list[bytes] = []
    size = 0
    while chunk := await stream.read(_CHUNK):
        size += len(chunk)
        if size <= limit:
            chunks.append(chunk)
            continue
        chunks.clear()
        with contextlib.suppress(ProcessLookupError):  # it has ended already
            process.kill()
    return b"".join(chunks) if size <= limit else None


async def _read_end(stream: asyncio.StreamReader) -> bytes:
    end = bytearray()
    while chunk := await stream.read(_CHUNK):
        end += chunk
        del end[:-ERRORS_MAX]
    return bytes(end)

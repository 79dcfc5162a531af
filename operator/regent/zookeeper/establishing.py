"""What a new session needs before anyone may use it."""

from __future__ import annotations

from typing import Final

from kazoo.exceptions import NoAuthError, NodeExistsError, UnimplementedError
from kazoo.protocol.serialization import Create, Exists

from regent.zookeeper.errors import code_of, unexpected
from regent.zookeeper.generation import Generation, is_repeatable
from regent.zookeeper.kazoo_client import access_control_list
from regent.zookeeper.multi_read import GET_CHILDREN, MultiRead
from regent.zookeeper.settings import ZooKeeperSettings

_ATTEMPTS: Final = 2


async def find_bulk_reads(generation: Generation) -> None:
    """Find out whether the server knows MultiRead, and note it in the generation.

    The server is asked now and not at the first read: servers before 3.6 answer an unknown request
    by closing the connection, after an empty answer or without one. Every watch
    would be lost. A connection that is lost for another reason is given a second chance.

    Raises:
        SessionExpiredError: If the session is over.
        ZooKeeperUnavailableError: If no server answers within the bound.
    """
    for _ in range(_ATTEMPTS):
        await generation.connection()
        (answer,) = await generation.call([MultiRead(["/"], GET_CHILDREN)])
        if isinstance(answer, list):
            return
        if not isinstance(answer, Exception) or isinstance(answer, UnimplementedError):
            break
        is_repeatable(answer)
    generation.has_bulk_reads = False


async def ensure_chroot(generation: Generation, settings: ZooKeeperSettings) -> None:
    """Create the chroot if it is missing, and the settings say so.

    Without that this is a mere round trip. It proves the credentials: kazoo reports a
    connection before it has authenticated, and sends requests only afterwards. And it sees off the
    connection that an old server closes after :func:`find_bulk_reads`.

    Raises:
        SessionExpiredError: If the session is over.
        UnexpectedZooKeeperError: If the chroot may not be created.
        ZooKeeperUnavailableError: If no server answers within the bound.
    """
    (found,) = await generation.answers([Exists(settings.chroot or "/", None)])
    if not settings.chroot or not settings.create_chroot:
        return
    if found is not None and not isinstance(found, Exception):
        return
    path = ""
    for name in settings.chroot.strip("/").split("/"):
        path += f"/{name}"
        (created,) = await generation.answers([Create(path, b"", access_control_list(settings), 0)])
        match created:
            case str() | NodeExistsError():
                pass
            case NoAuthError() if path != settings.chroot:
                pass  # it may exist, only not for us to create in
            case Exception():
                raise unexpected(code_of(created), path)

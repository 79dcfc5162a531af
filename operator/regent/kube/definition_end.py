"""Finds out whether objects are deleted because their CustomResourceDefinition is, or was.

Kubernetes deletes all objects of a definition that is deleted, by whatever mistake that happens: a
chart is removed, a file is replaced with ``--force``. That says nothing about their topics. Objects
with a finalizer outlive their definition if somebody takes its own finalizer off: they are there
again, still being deleted, as soon as there is another one.

The definition says all that, if Regent may read it. With Roles in namespaces alone it may not. But
every authenticated user may ask the API server which kinds it has (``system:discovery``), and what
can be done with them: objects of a definition that is being deleted cannot be created any more.
"""

from __future__ import annotations

import asyncio
import logging
from datetime import datetime
from http import HTTPStatus
from typing import Final, NamedTuple

from regent.kube.client import KubeClient
from regent.kube.errors import KubeApiError, KubeError, KubeNotFoundError, KubeRightLostError
from regent.resources.kind import API_VERSION, ResourceKind

logger = logging.getLogger(__name__)

_DEFINITIONS: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_KINDS: Final = f"/apis/{API_VERSION}"

_SHOWN_WITHIN_S: Final = 1.0
"""Within which an API server shows by what can be done with a kind that its definition is being
deleted: it learns of that as watchers do, mostly within milliseconds."""

_ENDS: Final = "The definition %s is being deleted: topics stay"
_RIGHT_LOST: Final = (
    "whether the resource is deleted together with the CustomResourceDefinition %s cannot be found "
    "out: Regent may not read that any more (get customresourcedefinitions); no topic is deleted "
    "before it may, or is restarted: %s"
)


class _Definition(NamedTuple):
    """What was found out.

    Attributes:
        asked_at: By the clock of the event loop.
        ends: Whether it is being deleted, or gone.
        created_at: When the present one was created, aware; None: that is not known.
    """

    asked_at: float
    ends: bool = False
    created_at: datetime | None = None

    def explains(self, deleted_at: datetime) -> bool:
        """Times have whole seconds: what was deleted in the second of the creation counts as
        deleted before."""
        return self.ends or (self.created_at is not None and deleted_at <= self.created_at)


class DefinitionEnd:
    """Knows whether the definition of a kind is being deleted, and since when there is one.

    The API server notes the deletion in the definition before it deletes the first object. So an
    answer is right if the question comes after an object was seen being deleted. Those who ask
    while another question is under way share the next one.

    Args:
        shown_within_s: How long to wait before asking what can be done with the kind.
    """

    def __init__(
        self, client: KubeClient, kind: ResourceKind, *, shown_within_s: float = _SHOWN_WITHIN_S
    ) -> None:
        self._client = client
        self._plural = kind.plural
        self._shown_within_s = shown_within_s
        self._path = f"{_DEFINITIONS}/{kind.crd_name}"
        self._name = kind.crd_name
        self._logged: set[str] = set()
        self._was_readable = False
        self._known: _Definition | None = None
        self._asked: asyncio.Future[_Definition] | None = None
        self._next: asyncio.Future[_Definition] | None = None

    async def explains(self, deleted_at: datetime, max_age_s: float = 0.0) -> bool:
        """Whether an object that is deleted since then is, or was, deleted with its definition.
        Where that could never be read, for want of a right: whether it is, by what the API server
        shows to everybody. Where it shows nothing either: no.

        Args:
            deleted_at: The object's deletionTimestamp, aware.
            max_age_s: How old the answer may be. An older one than the deletion may be wrong.

        Raises:
            KubeRightLostError: The right to read the definition is gone: whoever takes it away
                may be about to delete the definition, too.
            KubeError: The API server does not answer.
        """
        known, now = self._known, asyncio.get_running_loop().time()
        if known is None or now - known.asked_at >= max_age_s:
            known = await self._ask()
        return known.explains(deleted_at)

    async def learn_right(self, *, every_s: float, retry_s: float) -> None:
        """Find out whether the definition can be read, before anything depends on it. Runs until
        cancelled.

        Args:
            every_s: When to look again whether there is the right by now.
            retry_s: When to ask again if the API server does not say.
        """
        while True:
            pause_s = every_s
            if not self._was_readable:
                try:
                    await self._read(asyncio.get_running_loop().time())
                except KubeError as error:
                    logger.debug("A definition cannot be read yet", extra={"error": str(error)})
                    pause_s = retry_s
            await asyncio.sleep(pause_s)

    async def _ask(self) -> _Definition:
        """The answer to a question that is not asked before now. One of those who wait for it may
        give up, and keeps nobody else from it."""
        if self._next is None:
            self._next = asyncio.ensure_future(self._ask_after(self._asked))
            self._next.add_done_callback(lambda done: done.cancelled() or done.exception())
        return await asyncio.shield(self._next)

    async def _ask_after(self, former: asyncio.Future[_Definition] | None) -> _Definition:
        if former is not None:
            await asyncio.wait((former,))
        self._asked, self._next = self._next, None
        self._known = await self._find_out(asyncio.get_running_loop().time())
        return self._known

    async def _find_out(self, now: float) -> _Definition:
        return await self._read(now) or _Definition(now, ends=await self._is_shown_to_end())

    async def _read(self, now: float) -> _Definition | None:
        """What the definition says; None: there never was the right to read it."""
        try:
            found = (await self._client.get(self._path))["metadata"]
        except KubeNotFoundError:
            self._was_readable = True
            return _Definition(now, ends=True)
        except KubeApiError as error:
            if error.status != HTTPStatus.FORBIDDEN:
                raise
            if self._was_readable:
                said = _RIGHT_LOST % (self._name, error)
                raise KubeRightLostError(said, status=error.status) from error
            return None
        self._was_readable = True
        if "deletionTimestamp" in found:
            self._log_once(_ENDS % self._name)
            return _Definition(now, ends=True)
        created = found.get("creationTimestamp")
        return _Definition(now, created_at=created and datetime.fromisoformat(created))

    async def _is_shown_to_end(self) -> bool:
        """Whether objects of the kind cannot be created any more.

        Raises:
            KubeError: The API server does not answer, or does not show the kind: it has just
                started, or the definition has gone, and its objects are about to.
        """
        await asyncio.sleep(self._shown_within_s)
        try:
            kinds = (await self._client.get(_KINDS)).get("resources") or ()
        except KubeNotFoundError:
            kinds = ()
        except KubeApiError as error:
            if error.status != HTTPStatus.FORBIDDEN:
                raise
            self._log_once(
                "Topics of KafkaTopics that are deleted together with their definition cannot be "
                f"kept: missing right: get customresourcedefinitions {self._name}, or get {_KINDS}"
            )
            return False
        verbs = next((each["verbs"] for each in kinds if each["name"] == self._plural), None)
        if verbs is None:
            raise KubeError(f"the API server does not show {self._name} among its kinds")
        if "create" in verbs:
            return False
        self._log_once(_ENDS % self._name)
        return True

    def _log_once(self, message: str) -> None:
        if message not in self._logged:
            self._logged.add(message)
            logger.warning(message)

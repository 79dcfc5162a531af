"""Undoes and removes the BrokerDrains that were made for evictions, where resources are served.

Pods are asked for one by one, and only while there is such a BrokerDrain: a watch of pods would
need the right to read all of them.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any

from pydantic import ValidationError

from regent.kube.client import KubeClient
from regent.kube.errors import KubeConflictError, KubeError, KubeNotFoundError
from regent.kube.eviction.drain_records import KnownDrain
from regent.kube.eviction.keeping import Step, next_step
from regent.kube.eviction.settings import EvictionSettings
from regent.kube.object_cache import ObjectKey
from regent.resources.broker_drain import BrokerDrain, DesiredDrainState

logger = logging.getLogger(__name__)


class EvictionKeeper:
    """Looks after the BrokerDrains of evictions, for as long as :meth:`run` runs.

    Args:
        keys: Returns the keys of all BrokerDrains.
        now: Returns the present, aware.
    """

    def __init__(
        self,
        client: KubeClient,
        settings: EvictionSettings,
        *,
        keys: Callable[[], Iterable[ObjectKey]],
        now: Callable[[], datetime],
    ) -> None:
        self._client = client
        self._settings = settings
        self._keys = keys
        self._now = now

    async def run(self, known: asyncio.Event) -> None:
        """Look after them, until cancelled.

        Args:
            known: Set once all BrokerDrains are known.
        """
        await known.wait()
        while True:
            for key in tuple(self._keys()):
                if key.namespace == self._settings.namespace and key.name.startswith(
                    self._settings.drain_prefix
                ):
                    await self._look_after_safely(key)
            await asyncio.sleep(self._settings.check_interval_s)

    async def _look_after_safely(self, key: ObjectKey) -> None:
        """A problem of one BrokerDrain keeps no other waiting; it is looked at again."""
        try:
            await self.look_after(key)
        except (KubeNotFoundError, KubeConflictError) as error:
            logger.debug("A BrokerDrain has changed meanwhile", extra={"problem": str(error)})
        except (KubeError, ValidationError) as error:
            logger.warning(
                "The BrokerDrain of an eviction cannot be looked after",
                extra={"drain": f"{key.namespace}/{key.name}", "problem": str(error)},
            )

    async def look_after(self, key: ObjectKey) -> None:
        """Do what is due about one BrokerDrain.

        Raises:
            KubeError: The API server refuses something, or does not answer.
            pydantic.ValidationError: The BrokerDrain cannot be read.
        """
        path = BrokerDrain.kind.object_path(key.namespace, key.name)
        drain = KnownDrain.read(await self._client.get(path))
        if drain.record is None:
            return
        pod = await self._pod(drain.record.namespace, drain.record.pod)
        step = next_step(drain, pod, self._settings, now=self._now())
        if step is None:
            return
        metadata = drain.parsed.metadata
        if step is Step.REMOVE:
            await self._client.delete(path, uid=metadata.uid, version=metadata.resource_version)
        else:
            patch = {
                "metadata": {"resourceVersion": metadata.resource_version},
                "spec": {"desiredState": str(DesiredDrainState.UNDONE)},
            }
            await self._client.merge_patch(path, patch)
        logger.info(
            "The BrokerDrain of an eviction is removed"
            if step is Step.REMOVE
            else "The BrokerDrain of an eviction is undone",
            extra={"drain": str(drain), "why": step.value},
        )

    async def _pod(self, namespace: str, name: str) -> Mapping[str, Any] | None:
        try:
            return await self._client.get(f"/api/v1/namespaces/{namespace}/pods/{name}")
        except KubeNotFoundError:
            return None

"""What keeps the known KafkaTopics up to date, and nothing that acts on them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from regent.kube.claim_index import ClaimIndex
from regent.kube.client import KubeClient
from regent.kube.health import KindHealth
from regent.kube.kopf_runner import KopfOptions
from regent.kube.object_cache import ObjectCache
from regent.kube.resync import Resync
from regent.kube.settings import PAGE_SIZE, KubeSettings
from regent.kube.waiting import cancel
from regent.kube.watching import KindWatch
from regent.reconcile.topics.kind import KAFKA_TOPIC
from sandbox import wait_until_async


class WatchedTopics:
    """The KafkaTopics of a namespace, by list and by kopf's stream."""

    def __init__(
        self,
        client: KubeClient,
        namespace: str,
        *,
        silent_after_s: float = 600,
        page_size: int = PAGE_SIZE,
    ) -> None:
        settings = KubeSettings(
            namespaces=(namespace,),
            stream_settled_after_s=0.5,
            stream_silent_after_s=silent_after_s,
            page_size=page_size,
        )
        self._page_size = page_size
        self.cache = ObjectCache("KafkaTopic", ClaimIndex(KAFKA_TOPIC))
        self.resync = Resync(
            client,
            KAFKA_TOPIC.kind,
            settings,
            cache=self.cache,
            health=KindHealth("KafkaTopic"),
            jitter=lambda: 0.0,
            on_news=lambda _: None,
            on_resync=lambda: None,
        )
        self.watch = KindWatch(KAFKA_TOPIC.kind, self.cache, self.resync, settings)

    async def wait_known(self, *names: str) -> None:
        """Wait until these are known and no others."""

        async def known() -> set[str]:
            return {key.name for key in tuple(self.cache.keys())}

        await wait_until_async(
            known,
            until=lambda found: found == set(names),
            describe=f"exactly {names} to be known",
        )

    async def wait_confirmed(self) -> None:
        """Wait until the stream has shown everything, or what it has not was looked up."""

        async def is_confirmed() -> bool:
            return self.watch.is_confirmed

        await wait_until_async(is_confirmed, describe="the round to be over")

    def _take(self, _: str, type_: str | None, body: Mapping[str, Any]) -> None:
        self.watch.take(type_, body)

    @asynccontextmanager
    async def watching(self) -> AsyncIterator[None]:
        """The first list, then the watch. Nothing of it may fail meanwhile."""
        stop = asyncio.Event()
        options = KopfOptions(
            kinds=[KAFKA_TOPIC.kind],
            on_event=self._take,
            on_signal=stop.set,
            ready_flag=self.watch.watching,
            page_size=self._page_size,
        )
        async with AsyncExitStack() as stack:
            confirming = asyncio.create_task(self.watch.confirm())
            stack.push_async_callback(cancel, (confirming,))
            running = asyncio.create_task(self.watch.run(options, stop_event=stop))
            stack.push_async_callback(cancel, (running,))
            yield
            assert not confirming.done()
            assert not running.done()
            stop.set()
            await running

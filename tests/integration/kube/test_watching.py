"""kopf's stream and the lists beside it, against a real API server: no ghosts, and no
more lists than are needed."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from regent.kube.client import KubeClient
from tests.integration.kube.conftest import Namespace, topic
from tests.support.kind_watch import WatchedTopics
from tests.support.kubernetes_proxy import KubernetesProxy

pytestmark = pytest.mark.integration


@pytest.fixture
async def client(proxy: KubernetesProxy) -> AsyncIterator[KubeClient]:
    async with KubeClient(max_connections=4, request_timeout_s=120) as opened:
        yield opened


async def test_lists_are_read_in_pages(
    namespace: Namespace, proxy: KubernetesProxy, client: KubeClient
) -> None:
    """A whole list may be more than there is memory for."""
    names = [f"topic-{number}" for number in range(5)]
    namespace.apply(*map(topic, names))
    topics = WatchedTopics(client, namespace.name, page_size=2)
    async with topics.watching():
        await topics.wait_confirmed()
        await topics.wait_known(*names)
    assert proxy.lists == 6, "three pages for Regent, three for kopf"


async def test_what_is_deleted_between_the_list_of_regent_and_that_of_kopf_is_no_ghost(
    namespace: Namespace, proxy: KubernetesProxy, client: KubeClient
) -> None:
    namespace.apply(topic("stays"), topic("goes"))
    topics = WatchedTopics(client, namespace.name)
    await topics.resync.load()
    await topics.wait_known("stays", "goes")
    namespace.delete("goes")
    namespace.apply(topic("comes"))
    async with topics.watching():
        await topics.wait_known("stays", "comes")
        await topics.wait_confirmed()
    assert proxy.lists == 3, "one more finds what has gone"


async def test_what_is_deleted_after_a_look_up_and_before_the_list_of_kopf_is_no_ghost(
    namespace: Namespace, proxy: KubernetesProxy, client: KubeClient
) -> None:
    namespace.apply(topic("stays"), topic("goes"))
    topics = WatchedTopics(client, namespace.name, silent_after_s=0.5)
    proxy.hold_lists_of_kopf()
    async with topics.watching():
        await proxy.wait_for_lists(3)
        namespace.delete("goes")
        proxy.release_lists()
        await topics.wait_known("stays")


async def test_deletions_while_the_api_server_forgets_the_version_of_the_watch_leave_no_ghost(
    namespace: Namespace, proxy: KubernetesProxy, client: KubeClient
) -> None:
    namespace.apply(topic("stays"), topic("goes"), topic("too"))
    topics = WatchedTopics(client, namespace.name)
    async with topics.watching():
        await topics.wait_confirmed()
        async with proxy.losing_events():
            namespace.delete("goes")
            namespace.delete("too")
            namespace.apply(topic("comes"))
        await topics.wait_known("stays", "comes")
        await topics.wait_confirmed()
        namespace.delete("comes")
        await topics.wait_known("stays")
    assert proxy.lists == 4, "Regent's first, kopf's two, and one that finds what has gone"

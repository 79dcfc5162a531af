"""Lists, page by page."""

from __future__ import annotations

import pytest
from aiohttp import web

from regent.kube.claim_index import ClaimIndex
from regent.kube.client import KubeClient
from regent.kube.errors import (
    KubeApiError,
    KubeNotFoundError,
    KubeUnavailableError,
)
from regent.kube.listing import list_namespace, list_objects
from regent.kube.object_cache import ObjectCache
from regent.kube.rights import NEEDED
from regent.kube.settings import KubeSettings
from regent.reconcile.topics.kind import KAFKA_TOPIC
from regent.resources.kind import ALL_NAMESPACES
from tests.unit.kube.small_server import (
    GRANTED,
    LIST,
    OLD,
    TOPIC,
    Server,
)


async def test_lists_come_in_pages_and_from_every_namespace(
    client: KubeClient, server: Server
) -> None:
    def page(name: str, version: str, token: str = "") -> web.Response:
        metadata = {"resourceVersion": version, "continue": token}
        return web.json_response({**LIST, "metadata": metadata, "items": [{"name": name}]})

    granted = [web.json_response(GRANTED) for _ in NEEDED]
    again = [web.json_response(GRANTED) for _ in NEEDED]
    lists = [page("a", "30", "more"), page("b", "30")]
    server.answers = [*granted, *lists, *again, page("c", "7")]
    settings = KubeSettings(namespaces=("x", "y"), page_size=1)
    listing = await list_objects(client, TOPIC, settings)
    assert [body["name"] for body in listing.bodies] == ["a", "b", "c"]
    assert listing.version == "7"
    assert listing.readable == ("x", "y")
    prefix = "/apis/kafka.regent.dev/v1alpha1/namespaces"
    assert [path for method, path, _, _ in server.requests if method == "GET"] == [
        f"{prefix}/x/kafkatopics?limit=1",
        f"{prefix}/x/kafkatopics?limit=1&continue=more",
        f"{prefix}/y/kafkatopics?limit=1",
    ]


async def test_what_is_not_needed_of_an_object_goes_with_its_page(
    client: KubeClient, server: Server
) -> None:
    """Annotations of hundreds of kilobytes, some hundred times, are more memory than there is."""
    large = {"kubectl.kubernetes.io/last-applied-configuration": "x" * 1000}
    metadata = {"name": "a", "annotations": large}
    server.answers = [web.json_response(GRANTED) for _ in NEEDED]
    server.answers.append(web.json_response({**LIST, "items": [{"metadata": metadata}]}))
    cache = ObjectCache("KafkaTopic", ClaimIndex(KAFKA_TOPIC))
    listing = await list_objects(client, TOPIC, KubeSettings(), reduce=cache.reduced)
    assert [body["metadata"] for body in listing.bodies] == [{"name": "a"}]


@pytest.mark.parametrize("may_ask", [True, False], ids=["rights say no", "nobody may ask"])
async def test_a_namespace_that_may_not_be_read_keeps_no_other_from_being_listed(
    client: KubeClient, server: Server, may_ask: bool
) -> None:
    """Where Regent may not even ask for its rights, the refused list shows that they lack."""

    def forbidden() -> web.Response:
        return web.json_response({"kind": "Status", "reason": "Forbidden"}, status=403)

    denied = {**GRANTED, "status": {"allowed": False}}
    refused = [web.json_response(denied) for _ in NEEDED]
    unknown = [forbidden() for _ in NEEDED]
    granted = [web.json_response(GRANTED) for _ in NEEDED]
    found = {**LIST, "metadata": {"resourceVersion": "7"}, "items": [{"name": "c"}]}
    closed = refused if may_ask else [*unknown, forbidden()]
    server.answers = [*closed, *granted, web.json_response(found)]
    listing = await list_objects(client, TOPIC, KubeSettings(namespaces=("x", "y")))
    assert [body["name"] for body in listing.bodies] == ["c"]
    assert listing.readable == ("y",)
    (missing,) = listing.unreadable.items()
    assert missing[0] == "x"
    assert "list kafkatopics.kafka.regent.dev" in missing[1]
    assert "in namespace x" in missing[1]


async def test_listing_without_the_definition_says_what_is_missing(
    client: KubeClient, server: Server
) -> None:
    server.answers = [web.Response(status=404, text="404 page not found\n")]
    with pytest.raises(KubeNotFoundError) as raised:
        await list_namespace(client, TOPIC, ALL_NAMESPACES, page_size=10)
    assert "CustomResourceDefinition kafkatopics.kafka.regent.dev is not installed" in str(
        raised.value
    )
    assert "regent crds | kubectl apply -f -" in str(raised.value)


@pytest.mark.parametrize(
    "answer",
    [
        {},
        {"kind": "KafkaTopicList", "items": []},
        {"kind": "KafkaTopicList", "metadata": {"resourceVersion": "3"}},
        {"status": "all is well", "metadata": None, "items": "none"},
    ],
)
async def test_what_is_no_list_is_not_taken_for_an_empty_one(
    client: KubeClient, server: Server, answer: dict[str, object]
) -> None:
    """Else `regent release` would release nothing and say that all is done."""
    server.answers = [web.json_response(answer)]
    with pytest.raises(
        KubeUnavailableError, match=r"/kafkatopics: .* no (list of K|object of an A)"
    ):
        await list_namespace(client, TOPIC, ALL_NAMESPACES, page_size=10)


async def test_a_list_whose_pages_do_not_go_on_ends(client: KubeClient, server: Server) -> None:
    page = {**LIST, "metadata": {"resourceVersion": "3", "continue": "same"}, "items": []}
    server.answers = [web.json_response(page) for _ in range(50)]
    with pytest.raises(KubeUnavailableError, match="the same page"):
        await list_namespace(client, TOPIC, ALL_NAMESPACES, page_size=10)


async def test_a_list_that_expires_between_its_pages_is_made_anew(
    client: KubeClient, server: Server
) -> None:
    """The API server forgets the version of a list after five minutes, or when it is compacted."""
    first = {**LIST, "metadata": OLD, "items": [{"name": "a"}]}
    again = {**LIST, "metadata": {"resourceVersion": "9"}, "items": [{"name": "b"}]}
    expired = {"message": "the provided continue parameter is too old", "reason": "Expired"}
    server.answers = [
        web.json_response(first),
        web.json_response(expired, status=410),
        web.json_response(again),
    ]
    listed = await list_namespace(client, TOPIC, ALL_NAMESPACES, page_size=1)
    assert listed == ([{"name": "b"}], "9")


async def test_a_list_that_expires_again_and_again_fails(
    client: KubeClient, server: Server
) -> None:
    for _ in range(50):
        page = {**LIST, "metadata": OLD, "items": [{"name": "a"}]}
        server.answers.append(web.json_response(page))
        server.answers.append(web.json_response({"message": "too old"}, status=410))
    with pytest.raises(KubeApiError, match="too old"):
        await list_namespace(client, TOPIC, ALL_NAMESPACES, page_size=1)

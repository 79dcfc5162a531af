"""The API client against a small HTTP server: verbs, errors, patches."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

import pytest
from aiohttp import web

from regent.kube.client import APPLY_PATCH, MERGE_PATCH, KubeClient
from regent.kube.cluster_knowledge import ClusterKnowledge
from regent.kube.errors import (
    KubeApiError,
    KubeConflictError,
    KubeError,
    KubeNotFoundError,
    KubeTooLargeError,
    KubeUnavailableError,
)
from regent.kube.lease import Lease
from regent.kube.listing import list_objects
from regent.kube.rights import NEEDED, missing_rights
from regent.kube.settings import KubeSettings
from tests.support.present import present
from tests.support.viewed_port import ViewedPort
from tests.unit.kube.small_server import STORED, THING, TOPIC, Credentials, Server


async def test_verbs(client: KubeClient, server: Server) -> None:
    assert await client.get("/a", query={"limit": "1"}) == THING
    await client.create("/b", {"x": 1})
    await client.merge_patch("/c", {"x": None})
    assert server.requests == [
        ("GET", "/a?limit=1", "", ""),
        ("POST", "/b", "application/json", '{"x": 1}'),
        ("PATCH", "/c", MERGE_PATCH, '{"x": null}'),
    ]


async def test_what_is_applied_and_what_is_deleted_is_exactly_this_object(
    client: KubeClient, server: Server
) -> None:
    await client.apply("/a", {"x": 1}, manager="regent")
    await client.delete("/b", uid="u", version=None)
    await client.delete("/c", uid="u", version="7")
    applied, deleted, version_deleted = server.requests
    assert applied == ("PATCH", "/a?fieldManager=regent", APPLY_PATCH, '{"x": 1}')
    assert '"preconditions": {"uid": "u"}' in deleted[3]
    assert '"preconditions": {"uid": "u", "resourceVersion": "7"}' in version_deleted[3]


async def test_a_log_is_read_as_text(client: KubeClient, server: Server) -> None:
    server.answers = [web.Response(body=b"started\n\xff\n"), web.Response(status=400, text="no")]
    assert await client.get_text("/log", query={"tailLines": "2"}) == "started\n\ufffd\n"
    with pytest.raises(KubeApiError, match="GET /log: no"):
        await client.get_text("/log")


@pytest.mark.parametrize(
    "answer",
    [
        {"status": "UP"},
        {},
        {"metadata": None, "spec": None},
        {"kind": "Lease", "spec": {}, "status": {"allowed": True}},
        {"kind": "Lease", "metadata": None, "status": {"allowed": True}},
    ],
)
async def test_what_stands_in_front_of_an_api_server_is_not_taken_for_it(
    client: KubeClient, server: Server, answer: dict[str, object]
) -> None:
    """A page of a load balancer, say: its fields are none of those that are looked for, and a right
    that it does not grant is not missing."""
    settings = KubeSettings(namespaces=("x",))
    lease = Lease(
        client,
        namespace="x",
        name="regent",
        identity="a",
        serves="resources without spec.clusterRef",
        duration_s=15,
        knowledge=ClusterKnowledge(ViewedPort()),
        now=lambda: datetime.now(UTC),
    )
    for ask in (lambda: lease.take(by_force=True), lambda: missing_rights(client, TOPIC, "x")):
        server.answers = [web.json_response(answer) for _ in NEEDED]
        with pytest.raises(KubeUnavailableError, match=r"no object of an API server: .* is there"):
            await ask()
    server.answers = [web.json_response(answer) for _ in NEEDED]
    with pytest.raises(KubeUnavailableError, match="no object of an API server"):
        await list_objects(client, TOPIC, settings)


@pytest.mark.parametrize("missing", ["name", "uid", "resourceVersion"])
async def test_an_object_that_is_not_stored_is_none(
    client: KubeClient, server: Server, missing: str
) -> None:
    metadata = {key: value for key, value in STORED.items() if key != missing}
    answer = {"kind": "Thing", "metadata": metadata}
    server.answers = [web.json_response(answer), web.json_response(answer)]
    with pytest.raises(KubeUnavailableError, match="no object of an API server"):
        await client.get("/a")
    with pytest.raises(KubeUnavailableError, match="no object of an API server"):
        await client.merge_patch("/a", {})


@pytest.mark.parametrize("status", [200, 500])
async def test_an_answer_without_end_is_none(
    client: KubeClient, server: Server, status: int
) -> None:
    server.answers = [web.Response(text=100_000 * "[", status=status)]
    with pytest.raises(KubeError, match="GET /a: "):
        await client.get("/a")


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (404, KubeNotFoundError),
        (409, KubeConflictError),
        (403, KubeApiError),
        (422, KubeApiError),
        (500, KubeApiError),
    ],
)
async def test_refusals(
    client: KubeClient, server: Server, status: int, kind: type[KubeApiError]
) -> None:
    server.answers = [
        web.json_response(
            {"message": "no way", "reason": "Because"},
            status=status,
            headers={"Retry-After": "7"},
        )
    ]
    with pytest.raises(kind, match="GET /a: no way") as caught:
        await client.get("/a")
    assert type(caught.value) is kind
    assert (caught.value.status, caught.value.reason) == (status, "Because")
    assert caught.value.retry_after_s == 7


@pytest.mark.parametrize(
    ("status", "message"), [(500, "etcdserver: request is too large"), (413, "too long")]
)
async def test_an_object_that_is_too_large_is_told_from_other_failures(
    client: KubeClient, server: Server, status: int, message: str
) -> None:
    server.answers = [web.json_response({"message": message}, status=status)]
    with pytest.raises(KubeTooLargeError, match=message):
        await client.merge_patch("/a", {})


@pytest.mark.parametrize("payload", ["[]", '"fine"', "null", "", "<html>Please log in</html>"])
async def test_an_answer_that_is_no_object_is_none(
    client: KubeClient, server: Server, payload: str
) -> None:
    server.answers = [web.Response(text=payload, content_type="application/json")]
    with pytest.raises(KubeUnavailableError, match="GET /a: the answer is no JSON object"):
        await client.get("/a")


@pytest.mark.parametrize(
    ("asked", "waited"), [("7", 7.0), ("99999999", 60.0), ("9" * 400, 60.0), ("²", None)]
)
async def test_nobody_waits_for_days_because_a_server_says_so(
    client: KubeClient, server: Server, asked: str, waited: float | None
) -> None:
    server.answers = [web.json_response({}, status=429, headers={"Retry-After": asked})]
    with pytest.raises(KubeApiError) as caught:
        await client.get("/a")
    assert caught.value.retry_after_s == waited


async def test_the_time_is_that_of_the_api_server(client: KubeClient, server: Server) -> None:
    assert client.server_time() is None
    server.answers = [
        web.json_response(THING, headers={"Date": "Sun, 06 Nov 1994 08:49:37 GMT"}),
        web.json_response(THING, headers={"Date": "yesterday"}),
        web.json_response(THING, headers={"Date": f"Sun, 06 Nov {'9' * 20} 08:49:37 GMT"}),
    ]
    for _ in range(3):
        await client.get("/a")
        now = present(client.server_time())
        assert datetime(1994, 11, 6, 8, 49, 37, tzinfo=UTC) <= now
        assert now.year == 1994


async def test_a_request_that_waits_for_others_can_be_cancelled_and_the_next_one_is_sent(
    server: Server, credentials: Credentials
) -> None:
    waits: list[float] = []
    async with KubeClient(
        max_connections=1, request_timeout_s=60, credentials=credentials, on_wait=waits.append
    ) as client:
        server.gate.clear()
        first = asyncio.create_task(client.get("/first"))
        await server.asked.wait()
        second, third = (asyncio.create_task(client.get(path)) for path in ("/second", "/third"))
        await asyncio.sleep(0)
        second.cancel()
        with pytest.raises(asyncio.CancelledError):
            await second
        server.gate.set()
        assert [await first, await third] == 2 * [THING]
    assert [url for _, url, _, _ in server.requests] == ["/first", "/third"]
    assert len(waits) == 2
    assert 0 <= waits[0] < waits[1]


async def test_requests_that_wait_fail_with_the_client(
    server: Server, credentials: Credentials
) -> None:
    client = KubeClient(max_connections=1, request_timeout_s=60, credentials=credentials)
    server.gate.clear()
    asked = [asyncio.create_task(client.get(f"/{number}")) for number in range(3)]
    await server.asked.wait()
    await client.close()
    for outcome in await asyncio.gather(*asked, return_exceptions=True):
        assert isinstance(outcome, KubeUnavailableError | asyncio.CancelledError)
    assert len(server.requests) == 1
    with pytest.raises(KubeUnavailableError, match="the client is closed"):
        await client.get("/after")
    server.gate.set()


async def test_that_there_was_no_answer_in_time_is_said(
    server: Server, credentials: Credentials
) -> None:
    async with KubeClient(
        max_connections=1, request_timeout_s=0.2, credentials=credentials
    ) as client:
        server.gate.clear()
        with pytest.raises(KubeUnavailableError, match=r"GET /a: no answer within 0\.2 s"):
            await client.get("/a")
        server.gate.set()

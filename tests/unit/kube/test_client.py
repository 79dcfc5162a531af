"""The API client against a small HTTP server: credentials, errors, patches."""

from __future__ import annotations

import asyncio
import re
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

import kopf
import pytest
import trustme
from aiohttp import web

from regent.kube.client import APPLY_PATCH, CREDENTIALS_MAX_AGE_S, MERGE_PATCH, KubeClient
from regent.kube.errors import (
    KubeApiError,
    KubeConflictError,
    KubeError,
    KubeLoginError,
    KubeNotFoundError,
    KubeTooLargeError,
    KubeUnavailableError,
)
from regent.kube.lease import Lease
from regent.kube.listing import list_namespace, list_objects
from regent.kube.rights import NEEDED, missing_rights
from regent.kube.settings import KubeSettings
from regent.resources.kafka_topic import KafkaTopic
from regent.resources.kind import ALL_NAMESPACES

TOPIC = KafkaTopic.kind
LIST = {"kind": "KafkaTopicList", "metadata": {"resourceVersion": "3"}}
OLD = {"resourceVersion": "3", "continue": "old"}
GRANTED = {"kind": "SelfSubjectAccessReview", "status": {"allowed": True}}


class Server:
    """Answers as told and remembers what it was asked."""

    def __init__(self) -> None:
        self.valid_token = "one"
        self.answers: list[web.Response] = []
        self.requests: list[tuple[str, str, str, str]] = []
        self.url = ""
        self.asked = asyncio.Event()
        self.gate = asyncio.Event()
        self.gate.set()

    async def handle(self, request: web.Request) -> web.Response:
        token = request.headers.get("Authorization", "").removeprefix("Bearer ")
        body = (await request.read()).decode()
        self.requests.append(
            (request.method, str(request.rel_url), request.headers.get("Content-Type", ""), body)
        )
        self.asked.set()
        await self.gate.wait()
        if token != self.valid_token:
            return web.json_response({"message": "who are you"}, status=401)
        return self.answers.pop(0) if self.answers else web.json_response({"kind": "Thing"})


@asynccontextmanager
async def serving(fake: Server, context: ssl.SSLContext | None = None) -> AsyncIterator[str]:
    """Serve it; its URL."""
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", fake.handle)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context).start()
    port = runner.addresses[0][1]
    yield f"{'http' if context is None else 'https'}://127.0.0.1:{port}"
    await runner.cleanup()


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    fake = Server()
    async with serving(fake) as fake.url:
        yield fake


async def with_authority(url: str, authority: Path) -> kopf.ConnectionInfo:
    return kopf.ConnectionInfo(server=url, ca_path=str(authority), token="one")


class Credentials:
    """What a login reads; counts how often."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self.token = "one"
        self.reads = 0

    async def __call__(self) -> kopf.ConnectionInfo:
        self.reads += 1
        return kopf.ConnectionInfo(server=self._server.url, token=self.token)


@pytest.fixture
def credentials(server: Server) -> Credentials:
    return Credentials(server)


@pytest.fixture
async def client(credentials: Credentials) -> AsyncIterator[KubeClient]:
    async with KubeClient(max_connections=4, request_timeout_s=60, credentials=credentials) as made:
        yield made


async def test_verbs(client: KubeClient, server: Server) -> None:
    assert await client.get("/a", query={"limit": "1"}) == {"kind": "Thing"}
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


async def test_a_renewed_token_is_read_once_for_all(
    client: KubeClient, server: Server, credentials: Credentials
) -> None:
    await client.get("/a")
    server.valid_token = credentials.token = "two"
    await asyncio.gather(*(client.get("/a") for _ in range(20)))
    assert credentials.reads == 2


async def test_a_token_that_stays_invalid_is_an_error(client: KubeClient, server: Server) -> None:
    server.valid_token = "other"
    with pytest.raises(KubeApiError, match="who are you") as caught:
        await client.get("/a")
    assert caught.value.status == 401


async def test_certificates_that_cannot_be_used(tmp_path: Path) -> None:
    authority = tmp_path / "ca.crt"
    authority.write_text("not a certificate")

    async def credentials() -> kopf.ConnectionInfo:
        return kopf.ConnectionInfo(server="https://127.0.0.1:1", ca_path=str(authority))

    async with KubeClient(
        max_connections=1, request_timeout_s=60, credentials=credentials
    ) as client:
        with pytest.raises(KubeLoginError, match=r"certificates .* for https://127\.0\.0\.1:1"):
            await client.get("/a")


async def test_an_answer_that_is_not_from_an_api_server(client: KubeClient, server: Server) -> None:
    server.answers.append(web.Response(text="<html>Please log in</html>"))
    with pytest.raises(KubeUnavailableError, match="GET /a: the answer is no JSON object"):
        await client.get("/a")


@pytest.mark.parametrize("answer", [{"status": "UP"}, {}, {"metadata": None, "spec": None}])
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
        duration_s=15,
        now=lambda: datetime.now(UTC),
    )
    for ask in (lambda: lease.take(by_force=True), lambda: missing_rights(client, TOPIC, "x")):
        server.answers = [web.json_response(answer) for _ in NEEDED]
        with pytest.raises(KubeUnavailableError, match=r"no object of an API server: .* is there"):
            await ask()
    server.answers = [web.json_response(answer) for _ in NEEDED]
    with pytest.raises(KubeUnavailableError, match="no object of an API server"):
        await list_objects(client, TOPIC, settings)


@pytest.mark.parametrize("status", [200, 500])
async def test_an_answer_without_end_is_none(
    client: KubeClient, server: Server, status: int
) -> None:
    server.answers = [web.Response(text=100_000 * "[", status=status)]
    with pytest.raises(KubeError, match="GET /a: "):
        await client.get("/a")


async def test_credentials_are_read_again_after_a_while(
    client: KubeClient, credentials: Credentials, monkeypatch: pytest.MonkeyPatch
) -> None:
    await client.get("/a")
    await client.get("/a")
    assert credentials.reads == 1
    monkeypatch.setattr("regent.kube.client.CREDENTIALS_MAX_AGE_S", -1.0)
    await client.get("/a")
    assert credentials.reads == 2
    assert CREDENTIALS_MAX_AGE_S > 0


@pytest.mark.parametrize(
    ("status", "kind"),
    [(404, KubeNotFoundError), (409, KubeConflictError), (403, KubeApiError), (500, KubeApiError)],
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


async def test_a_proxys_refusal_is_no_json(client: KubeClient, server: Server) -> None:
    server.answers = [web.Response(status=502, text="<html>bad gateway</html>")]
    with pytest.raises(KubeApiError, match="bad gateway"):
        await client.get("/a")


async def test_an_invalid_object_is_no_conflict(client: KubeClient, server: Server) -> None:
    server.answers = [web.json_response({"message": "invalid"}, status=422)]
    with pytest.raises(KubeApiError, match="invalid") as caught:
        await client.merge_patch("/a", {})
    assert not isinstance(caught.value, KubeConflictError)


async def test_an_authority_that_was_replaced_in_place_is_trusted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the kubelet replaces ``ca.crt`` when the cluster's certificate authority is rotated."""
    authority = tmp_path / "ca.crt"
    before, after = trustme.CA(), trustme.CA()
    before.cert_pem.write_to_path(authority)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    after.issue_cert("127.0.0.1").configure_cert(context)
    async with (
        serving(Server(), context) as url,
        KubeClient(
            max_connections=1,
            request_timeout_s=60,
            credentials=lambda: with_authority(url, authority),
        ) as client,
    ):
        with pytest.raises(KubeUnavailableError, match="certificate verify failed"):
            await client.get("/a")
        after.cert_pem.write_to_path(authority)
        monkeypatch.setattr("regent.kube.client.CREDENTIALS_MAX_AGE_S", -1.0)
        assert await client.get("/a") == {"kind": "Thing"}


async def test_what_waits_when_the_server_is_another_one_is_carried_out(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """aiohttp cancels what waits for a connection of a session that ends, which ends the tasks that
    wait for an answer."""
    successor = Server()
    async with serving(successor) as successor.url:
        addresses = [server.url, successor.url]

        async def credentials() -> kopf.ConnectionInfo:
            return kopf.ConnectionInfo(server=addresses[0], token="one")

        server.gate.clear()
        async with KubeClient(
            max_connections=1, request_timeout_s=60, credentials=credentials
        ) as client:
            waiting = [asyncio.create_task(client.get(f"/{i}")) for i in range(3)]
            await server.asked.wait()
            del addresses[0]
            monkeypatch.setattr("regent.kube.client.CREDENTIALS_MAX_AGE_S", -1.0)
            await client.get("/after")
            server.gate.set()
            assert await asyncio.gather(*waiting) == 3 * [{"kind": "Thing"}]
        assert [url for _, url, _, _ in server.requests] == ["/0", "/1", "/2"]
        assert [url for _, url, _, _ in successor.requests] == ["/after"]


async def test_certificates_that_become_unusable_are_named_by_every_request(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    authority = tmp_path / "ca.crt"
    trustme.CA().cert_pem.write_to_path(authority)
    async with KubeClient(
        max_connections=1,
        request_timeout_s=60,
        credentials=lambda: with_authority(server.url, authority),
    ) as client:
        await client.get("/a")
        monkeypatch.setattr("regent.kube.client.CREDENTIALS_MAX_AGE_S", -1.0)
        authority.write_text("half a certif")
        for _ in range(2):
            with pytest.raises(KubeLoginError, match="certificates"):
                await client.get("/a")
        trustme.CA().cert_pem.write_to_path(authority)
        await client.get("/a")


async def test_nobody_answers(server: Server) -> None:
    async def nowhere() -> kopf.ConnectionInfo:
        return kopf.ConnectionInfo(server="http://127.0.0.1:1")

    async with KubeClient(max_connections=1, request_timeout_s=60, credentials=nowhere) as client:
        with pytest.raises(KubeUnavailableError, match="GET /a"):
            await client.get("/a")


@pytest.mark.parametrize(
    "address",
    [
        "https://api..svc:6443",
        f"https://{64 * 'a'}.svc",
        "https://[::1",
        "https://api:port",
        "https://api:99999",
        "//api",
        "api:6443",
        "unix:///run/api",
        "",
    ],
)
async def test_what_is_no_address_of_an_api_server_is_named(address: str) -> None:
    """Not by what aiohttp or a codec raises: that would count as a defect."""

    async def credentials() -> kopf.ConnectionInfo:
        return kopf.ConnectionInfo(server=address, token="one")

    async with KubeClient(
        max_connections=1, request_timeout_s=60, credentials=credentials
    ) as client:
        with pytest.raises(KubeLoginError, match=f"'{re.escape(address)}' is no address"):
            await client.get("/a")


async def test_a_password_in_an_address_is_not_shown() -> None:
    async def credentials() -> kopf.ConnectionInfo:
        return kopf.ConnectionInfo(server="https://me:secret@api", token="one")

    async with KubeClient(
        max_connections=1, request_timeout_s=60, credentials=credentials
    ) as client:
        with pytest.raises(KubeLoginError, match=r"^(?!.*secret).*has a user in it"):
            await client.get("/a")


@pytest.mark.parametrize(
    ("token", "user"), [("to\nken", None), (None, "a:b")], ids=["token", "user"]
)
async def test_credentials_that_no_request_can_carry_are_named(
    server: Server, token: str | None, user: str | None
) -> None:
    async def credentials() -> kopf.ConnectionInfo:
        return kopf.ConnectionInfo(server=server.url, token=token, username=user, password=user)

    async with KubeClient(
        max_connections=1, request_timeout_s=60, credentials=credentials
    ) as client:
        with pytest.raises(KubeLoginError, match=f"credentials for {server.url} cannot be used"):
            await client.get("/a")
    assert not server.requests


async def test_credentials_that_do_not_come_hold_nobody_up_for_longer_than_an_answer(
    server: Server,
) -> None:
    """As with a plugin that kubeconfig names, and that waits for a network."""
    readings, over = 0, asyncio.Event()

    async def credentials() -> kopf.ConnectionInfo:
        nonlocal readings
        readings += 1
        await over.wait()
        return kopf.ConnectionInfo(server=server.url, token="one")

    async with KubeClient(
        max_connections=1, request_timeout_s=0.2, credentials=credentials
    ) as client:
        began_at = asyncio.get_running_loop().time()
        asked = [client.get("/a") for _ in range(50)]
        for outcome in await asyncio.gather(*asked, return_exceptions=True):
            assert isinstance(outcome, KubeLoginError)
            assert "were not read within 0.2 s" in str(outcome)
        assert asyncio.get_running_loop().time() - began_at < 5
        over.set()
        await asyncio.sleep(0.01)
        await client.get("/a")
        assert readings == 1


async def test_closed(client: KubeClient) -> None:
    await client.get("/a")
    await client.close()
    with pytest.raises(KubeError, match="closed"):
        await client.get("/a")


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


async def test_an_empty_list_is_one(client: KubeClient, server: Server) -> None:
    nothing: list[object] = []
    for items in (nothing, None):
        server.answers = [web.json_response({**LIST, "items": items})]
        listed = await list_namespace(client, TOPIC, ALL_NAMESPACES, page_size=10)
        assert listed == ([], "3")


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


@pytest.mark.parametrize("payload", ["[]", '"fine"', "null", ""])
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
        web.json_response({"kind": "Thing"}, headers={"Date": "Sun, 06 Nov 1994 08:49:37 GMT"}),
        web.json_response({"kind": "Thing"}, headers={"Date": "yesterday"}),
        web.json_response(
            {"kind": "Thing"}, headers={"Date": f"Sun, 06 Nov {'9' * 20} 08:49:37 GMT"}
        ),
    ]
    for _ in range(3):
        await client.get("/a")
        now = client.server_time()
        assert now is not None
        assert datetime(1994, 11, 6, 8, 49, 37, tzinfo=UTC) <= now
        assert now.year == 1994

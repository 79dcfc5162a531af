"""The API client: addresses, tokens and certificates."""

from __future__ import annotations

import asyncio
import re
import ssl
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import kopf
import pytest
import trustme

from regent.kube.client import CREDENTIALS_MAX_AGE_S, KubeClient
from regent.kube.errors import (
    KubeLoginError,
    KubeUnavailableError,
)
from tests.unit.kube.small_server import (
    THING,
    Credentials,
    Server,
    serving,
    with_authority,
)

Login = Callable[[], Awaitable[kopf.ConnectionInfo]]


def client_with(credentials: Login, *, timeout_s: float = 60) -> KubeClient:
    return KubeClient(max_connections=1, request_timeout_s=timeout_s, credentials=credentials)


def fixed(**info: Any) -> Login:
    """Credentials that stay the same."""

    async def credentials() -> kopf.ConnectionInfo:
        return kopf.ConnectionInfo(**info)

    return credentials


async def test_a_renewed_token_is_read_once_for_all(
    client: KubeClient, server: Server, credentials: Credentials
) -> None:
    await client.get("/a")
    server.valid_token = credentials.token = "two"
    await asyncio.gather(*(client.get("/a") for _ in range(20)))
    assert credentials.reads == 2


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
        client_with(lambda: with_authority(url, authority)) as client,
    ):
        with pytest.raises(KubeUnavailableError, match="certificate verify failed"):
            await client.get("/a")
        after.cert_pem.write_to_path(authority)
        monkeypatch.setattr("regent.kube.client.CREDENTIALS_MAX_AGE_S", -1.0)
        assert await client.get("/a") == THING


async def test_what_waits_when_the_server_is_another_one_goes_there(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is under way is carried out: aiohttp cancels it with its session, which ends the tasks
    that wait for an answer."""
    successor = Server()
    async with serving(successor) as successor.url:
        addresses = [server.url, successor.url]

        async def credentials() -> kopf.ConnectionInfo:
            return kopf.ConnectionInfo(server=addresses[0], token="one")

        server.gate.clear()
        async with client_with(credentials) as client:
            waiting = [asyncio.create_task(client.get(f"/{i}")) for i in range(3)]
            await server.asked.wait()
            del addresses[0]
            monkeypatch.setattr("regent.kube.client.CREDENTIALS_MAX_AGE_S", -1.0)
            await client.get("/after")
            server.gate.set()
            assert await asyncio.gather(*waiting) == 3 * [THING]
        assert [url for _, url, _, _ in server.requests] == ["/0"]
        assert [url for _, url, _, _ in successor.requests] == ["/after", "/1", "/2"]


async def test_certificates_that_become_unusable_are_named_by_every_request(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    authority = tmp_path / "ca.crt"
    trustme.CA().cert_pem.write_to_path(authority)
    async with client_with(lambda: with_authority(server.url, authority)) as client:
        await client.get("/a")
        monkeypatch.setattr("regent.kube.client.CREDENTIALS_MAX_AGE_S", -1.0)
        authority.write_text("half a certif")
        for _ in range(2):
            with pytest.raises(KubeLoginError, match="certificates"):
                await client.get("/a")
        trustme.CA().cert_pem.write_to_path(authority)
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

    async with client_with(fixed(server=address, token="one")) as client:
        with pytest.raises(KubeLoginError, match=f"'{re.escape(address)}' is no address"):
            await client.get("/a")


async def test_a_password_in_an_address_is_not_shown() -> None:
    async with client_with(fixed(server="https://me:secret@api", token="one")) as client:
        with pytest.raises(KubeLoginError, match=r"^(?!.*secret).*has a user in it"):
            await client.get("/a")


@pytest.mark.parametrize(
    ("token", "user"), [("to\nken", None), (None, "a:b")], ids=["token", "user"]
)
async def test_credentials_that_no_request_can_carry_are_named(
    server: Server, token: str | None, user: str | None
) -> None:
    credentials = fixed(server=server.url, token=token, username=user, password=user)
    async with client_with(credentials) as client:
        with pytest.raises(KubeLoginError, match=f"credentials for {server.url} cannot be used"):
            await client.get("/a")
    assert not server.requests


async def test_credentials_that_do_not_come_hold_nobody_up_for_longer_than_an_answer(
    server: Server,
) -> None:
    """As with a plugin that kubeconfig names, and that waits for a network."""
    readings, over, given = 0, asyncio.Event(), asyncio.Event()

    async def credentials() -> kopf.ConnectionInfo:
        nonlocal readings
        readings += 1
        await over.wait()
        given.set()
        return kopf.ConnectionInfo(server=server.url, token="one")

    async with client_with(credentials, timeout_s=0.2) as client:
        asked = [client.get("/a") for _ in range(50)]
        for outcome in await asyncio.gather(*asked, return_exceptions=True):
            assert isinstance(outcome, KubeLoginError)
            assert "were not read within 0.2 s" in str(outcome)
        assert readings == 1, "all have waited for the same one"
        over.set()
        await given.wait()
        await client.get("/a")
        assert readings == 1

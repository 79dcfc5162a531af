"""The eviction hook's server: what it needs to start, and what it answers if it cannot decide."""

from __future__ import annotations

import asyncio
import json
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from regent.kube.health import KubeHealth
from regent.kube.settings import KubeSettings
from regent.model.errors import ConfigurationError
from regent.servers.eviction_endpoint import EvictionEndpoint
from regent.servers.eviction_settings import eviction_settings
from regent.settings.loading import load_settings
from sandbox.pki import Authority
from tests.unit.kube.eviction.builders import pod
from tests.unit.kube.small_server import THING, Server
from tests.unit.kube.small_server import serving as api_served

KUBECONFIG = """\
apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "%s"}}]
users: [{name: u, user: {}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
current-context: x
"""
REVIEW = {
    "apiVersion": "admission.k8s.io/v1",
    "request": {
        "uid": "u",
        "resource": {"resource": "pods"},
        "subResource": "eviction",
        "operation": "CREATE",
        "namespace": "kafka",
        "name": "broker-1",
    },
}


@pytest.fixture
def options(tmp_path: Path) -> dict[str, Any]:
    files = Authority(tmp_path).issue()
    token = tmp_path / "token"
    token.write_text("s3cr3t\n")
    return {
        "zookeeper": "zk:1",
        "eviction_host": "127.0.0.1",
        "eviction_port": 0,
        "eviction_pods": "app=kafka",
        "eviction_namespace": "kafka",
        "eviction_certificate_file": files.certificate,
        "eviction_key_file": files.key,
        "eviction_token_file": token,
    }


@pytest.fixture
def use_kubeconfig(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[str], None]:
    """Make an API server that of the process."""

    def use(api_url: str) -> None:
        (tmp_path / "kubeconfig").write_text(KUBECONFIG % api_url)
        monkeypatch.setenv("KUBECONFIG", str(tmp_path / "kubeconfig"))
        monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)

    return use


def endpoint(options: dict[str, Any], **changes: Any) -> EvictionEndpoint:
    settings = load_settings({**options, **changes})
    return EvictionEndpoint(settings, KubeSettings(evictions=eviction_settings(settings)))


def test_a_port_that_is_taken_is_named(options: dict[str, Any]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(
            ConfigurationError, match=f"cannot listen on 127.0.0.1:{port}.*another eviction_host"
        ):
            endpoint(options, eviction_port=port)


def test_a_certificate_that_cannot_be_read_is_named(options: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match=r"TLS of the eviction hook: .*nothing.pem"):
        endpoint(options, eviction_certificate_file=Path("/nothing.pem"))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "eviction_token_file .*token cannot be read: .*No such file"),
        ("", "eviction_token_file .*token has to have one word of letters and digits"),
        ("two words", "has to have one word"),
        ("../metrics", "has to have one word"),
        ("ümlaut", "cannot be read"),
    ],
)
def test_bad_token_is_named(options: dict[str, Any], content: str | None, message: str) -> None:
    """An empty one would let everybody in."""
    if content is None:
        options["eviction_token_file"].unlink()
    else:
        options["eviction_token_file"].write_text(content, encoding="utf-8")
    with pytest.raises(ConfigurationError, match=message):
        endpoint(options)


@asynccontextmanager
async def served(
    options: dict[str, Any], folder: Path
) -> AsyncIterator[Callable[[], Awaitable[tuple[int, str]]]]:
    """The endpoint; what is yielded asks it about an eviction: status and text of the answer."""
    serving = endpoint(options)
    stop = asyncio.Event()
    running = asyncio.create_task(serving.run(stop, KubeHealth()))
    trust = ssl.create_default_context(cafile=str(folder / "ca.pem"))

    async def ask() -> tuple[int, str]:
        url = f"https://127.0.0.1:{serving.port}/evictions/s3cr3t"
        async with (
            aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=trust)) as session,
            session.post(url, data=json.dumps(REVIEW)) as response,
        ):
            return response.status, await response.text()

    try:
        yield ask
    finally:
        stop.set()
        await running
        serving.close()


async def test_when_somebody_asked_is_written_down_by_the_clock_of_the_api_server(
    options: dict[str, Any], use_kubeconfig: Callable[[str], None], tmp_path: Path
) -> None:
    """The replica that looks after the BrokerDrain counts from then, and has another clock."""
    api, now = Server(), datetime(2036, 1, 2, 3, 4, 5, tzinfo=UTC)
    broker = {"kind": "Pod", **pod("broker-1")}
    broker["metadata"]["resourceVersion"] = "1"
    listed = {"kind": "BrokerDrainList", "metadata": {"resourceVersion": "1"}, "items": []}
    api.answers = [
        web.json_response(answer, headers={"Date": format_datetime(now, usegmt=True)})
        for answer in (broker, listed, THING)
    ]
    async with api_served(api) as api_url:
        use_kubeconfig(api_url)
        api.valid_token = ""
        async with served(options, tmp_path) as ask:
            status, text = await ask()
            assert status == 200, text
    method, path, _, body = api.requests[-1]
    assert (method, path.rpartition("/")[2]) == ("POST", "brokerdrains")
    asked = json.loads(body)["metadata"]["annotations"]["kafka.regent.dev/eviction-asked-at"]
    assert timedelta() <= datetime.fromisoformat(asked) - now < timedelta(hours=1)


async def test_what_cannot_be_decided_is_left_to_the_failure_policy(
    options: dict[str, Any], use_kubeconfig: Callable[[str], None], tmp_path: Path
) -> None:
    """An answer other than 200 counts as none."""
    use_kubeconfig("http://127.0.0.1:1")
    async with served(options, tmp_path) as ask:
        status, text = await ask()
        assert status == 500
        assert text.startswith("GET /api/v1/namespaces/kafka/pods/broker-1: Cannot connect")
        options["eviction_token_file"].unlink()
        status, text = await ask()
        assert status == 500
        assert "eviction_token_file" in text


async def test_what_is_not_decided_in_time_is_left_to_the_failure_policy_too(
    options: dict[str, Any],
    use_kubeconfig: Callable[[str], None],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    """The API server does not wait for longer, whatever the question itself waits for."""
    monkeypatch.setattr("regent.servers.eviction_endpoint._TIMEOUT_S", 0.5)
    monkeypatch.setattr("regent.servers.eviction_endpoint._MAX_CONNECTIONS", 1)
    api = Server()
    api.gate.clear()
    async with api_served(api) as api_url:
        use_kubeconfig(api_url)
        async with served(options, tmp_path) as ask:
            answers = await asyncio.gather(*(ask() for _ in range(4)))
        api.gate.set()
    assert [status for status, _ in answers] == [500] * 4
    assert sum("there was no verdict within 0.5 s" in text for _, text in answers) >= 2

"""Encrypted connections and authenticated sessions."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import logging
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from kazoo.security import make_acl

from regent.model.errors import UnexpectedZooKeeperError, ZooKeeperUnavailableError
from regent.zk_data.operations import Check, Create, SetData, Written
from regent.zookeeper.host_lookup import Address
from regent.zookeeper.settings import SaslSettings, TlsSettings, ZooKeeperSettings
from regent.zookeeper.upgraded_server import is_upgraded
from sandbox import ZooKeeper
from sandbox.java import TUNED_FOR_QUICK_START
from sandbox.pki import create_tls_files
from sandbox.ports import lease_port
from sandbox.process import Outcome
from sandbox.regent_process import run_regent
from tests.integration.zookeeper.harness import Connected, connected, settings_for, until
from tests.support.znodes import Znodes

pytestmark = pytest.mark.integration

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def tls_settings(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZooKeeperSettings]:
    files = create_tls_files(tmp_path_factory.mktemp("tls"))
    lease = lease_port()
    config = {
        "secureClientPort": lease.port,
        "serverCnxnFactory": "org.apache.zookeeper.server.NettyServerCnxnFactory",
        "ssl.keyStore.location": files.key_store,
        "ssl.trustStore.location": files.ca_certificate,
        "ssl.clientAuth": "need",
    }
    with ZooKeeper(config={name: str(value) for name, value in config.items()}):
        yield dataclasses.replace(
            settings_for(f"127.0.0.1:{lease.port}/tls"),
            tls=TlsSettings(
                ca_file=str(files.ca_certificate),
                certificate_file=str(files.certificate),
                key_file=str(files.key),
            ),
        )
    lease.release()


def server_of(client: Connected) -> Address:
    server = client.session.generation().client.server
    assert server is not None
    return server


async def test_an_encrypted_connection(
    tls_settings: ZooKeeperSettings, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    async with connected(tls_settings) as client:
        (connecting,) = [m for m in caplog.messages if m.startswith("Connecting to ")]
        assert connecting.endswith("use_ssl: True")
        paths = [f"/n{i}" for i in range(3000)]
        created = await client.port.write(
            [Create(path, b"x" * 200) for path in paths], guard=Check("/", -1)
        )
        assert created == [Written(0, path) for path in paths]
        nodes = await client.port.get_data(paths, watch=True)
        assert [node and len(node.data) for node in nodes] == [200] * len(paths)
        assert await is_upgraded(server_of(client), tls_settings)


@pytest.mark.parametrize(
    ("mistake", "reason"),
    [
        ("no certificate of our own", "(?i)certificate"),
        ("a certificate authority that we do not trust", "CERTIFICATE_VERIFY_FAILED"),
        ("no encryption", "no answer to the session request.* expect TLS"),
    ],
)
async def test_an_encrypted_connection_that_is_refused(
    tls_settings: ZooKeeperSettings, mistake: str, reason: str
) -> None:
    tls = tls_settings.tls
    assert tls is not None
    changed: TlsSettings | None = None
    if mistake == "no certificate of our own":
        changed = dataclasses.replace(tls, certificate_file=None, key_file=None)
    elif mistake != "no encryption":
        changed = dataclasses.replace(tls, ca_file=None)
    await assert_refused(dataclasses.replace(tls_settings, tls=changed), reason)


async def assert_refused(settings: ZooKeeperSettings, reason: str) -> None:
    """Wait until it is known why there is no session: whoever waits for one reads it."""
    client = Connected(settings)
    session = client.session
    try:
        with pytest.raises(ZooKeeperUnavailableError):
            await session.start(timeout_s=0.01)
        await until(
            lambda: re.search(reason, session.problem or "") is not None,
            describe=lambda: f"{reason!r}; saw {session.problem!r}",
        )
        with pytest.raises(ZooKeeperUnavailableError, match=reason):
            await session.wait_until_established(timeout_s=0.01)
        assert client.states == []
    finally:
        await session.close()


@pytest.fixture(scope="module")
def sasl_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZooKeeper]:
    pytest.importorskip("puresasl")
    jaas = tmp_path_factory.mktemp("sasl") / "jaas.conf"
    jaas.write_text(
        "Server { org.apache.zookeeper.server.auth.DigestLoginModule required "
        'user_regent="secret"; };'
    )
    options = [*TUNED_FOR_QUICK_START, f"-Djava.security.auth.login.config={jaas}"]
    config = {"authProvider.1": "org.apache.zookeeper.server.auth.SASLAuthenticationProvider"}
    with ZooKeeper(config=config, java_options=options) as server:
        yield server


async def test_an_authenticated_session(sasl_server: ZooKeeper) -> None:
    settings = dataclasses.replace(
        settings_for(sasl_server.connect_string + "/sasl"),
        sasl=SaslSettings(username="regent", password="secret"),
        set_acl=True,
    )
    async with connected(settings) as client:
        assert await client.port.multi([Create("/owned", b"1")]) == [Written(0, "/owned")]
        assert await client.port.multi([SetData("/owned", b"2")]) == [Written(1)]
        assert await is_upgraded(server_of(client), settings)
    async with connected(settings_for(sasl_server.connect_string + "/sasl")) as anyone:
        (node,) = await anyone.port.get_data(["/owned"])
        assert node is not None
        assert node.data == b"2"
        with pytest.raises(UnexpectedZooKeeperError, match="NOAUTH"):
            await anyone.port.multi([SetData("/owned", b"3")])


async def test_what_brokers_keep_from_others_is_created_so(sasl_server: ZooKeeper) -> None:
    """SCRAM credentials, brokers' passwords, delegation tokens; as ``ZkData.sensitivePath``."""
    chroot = "/sensitive"
    settings = dataclasses.replace(
        settings_for(sasl_server.connect_string + chroot),
        sasl=SaslSettings(username="regent", password="secret"),
        set_acl=True,
    )
    sensitive = ["/config/users", "/config/users/alice", "/config/brokers"]
    others = ["/config", "/config/topics", "/config/topics/orders"]
    async with connected(settings) as client:
        await client.port.multi([Create(path) for path in ("/config", "/config/users")])
        rest = [Create(path) for path in (*sensitive[1:], *others[1:])]
        await client.port.write(rest, guard=Check("/config", 0))
    own = {"mechanism": "DIGEST-MD5", "username": "regent", "password": "secret"}
    with Znodes(sasl_server.connect_string, sasl_options=own) as znodes:
        for paths, readers in ((sensitive, ["sasl"]), (others, ["sasl", "world"])):
            for path in paths:
                acls, _ = znodes.client.get_acls(chroot + path)
                assert sorted(acl.id.scheme for acl in acls) == readers, path


async def test_refused_credentials(sasl_server: ZooKeeper) -> None:
    wrong = SaslSettings(username="regent", password="wrong")
    settings = dataclasses.replace(settings_for(sasl_server.connect_string), sasl=wrong)
    await assert_refused(settings, "refused the credentials")


def run_status(*arguments: str | Path, **environment: str) -> Outcome:
    return run_regent("status", "--json", "--url", "http://127.0.0.1:1", *arguments, **environment)


async def test_status_with_a_wrong_password_says_so_once(
    sasl_server: ZooKeeper, tmp_path: Path
) -> None:
    password = tmp_path / "password"
    password.write_text("wrong")
    outcome = await asyncio.to_thread(
        run_status,
        *("--zookeeper", sasl_server.connect_string, "--zookeeper-sasl-username", "regent"),
        *("--zookeeper-sasl-password-file", password),
    )
    assert outcome.exit_code == 3
    assert outcome.stderr.count("refused the credentials") == 1, outcome.stderr


async def test_a_port_without_tls_is_named(
    sasl_server: ZooKeeper, tls_settings: ZooKeeperSettings
) -> None:
    hosts = settings_for(sasl_server.connect_string).hosts
    settings = dataclasses.replace(tls_settings, hosts=hosts)
    await assert_refused(settings, "may not speak TLS: zookeeper must name")


def reported(outcome: Outcome) -> dict[str, Any]:
    """The report of a ZooKeeper without brokers."""
    assert outcome.exit_code == 4, outcome  # nobody is the controller
    report: dict[str, Any] = json.loads(outcome.stdout)
    assert report["brokers"] == []
    return report


async def test_status_with_the_settings_file_of_a_regent_that_uses_tls(
    tls_settings: ZooKeeperSettings, tmp_path: Path
) -> None:
    async with connected(tls_settings):  # creates the chroot
        pass
    tls = tls_settings.tls
    assert tls is not None
    file = tmp_path / "settings.yaml"
    file.write_text(
        yaml.safe_dump(
            {
                "zookeeper": ",".join(tls_settings.hosts) + tls_settings.chroot,
                "zookeeper_tls": True,
                "zookeeper_tls_ca_file": tls.ca_file,
                "zookeeper_tls_certificate_file": tls.certificate_file,
                "zookeeper_tls_key_file": tls.key_file,
                "broker_request_timeout_ms": 20_000,  # of no interest here, but in the file
            }
        )
    )
    reported(await asyncio.to_thread(run_status, "--config", file))


async def test_status_with_the_credentials_of_a_regent_that_uses_sasl(
    sasl_server: ZooKeeper, tmp_path: Path
) -> None:
    chroot = f"{sasl_server.connect_string}/private"
    settings = dataclasses.replace(
        settings_for(chroot), sasl=SaslSettings(username="regent", password="secret")
    )
    async with connected(settings) as client:
        await client.port.multi([Create("/cluster"), Create("/cluster/id", b'{"id":"abc"}')])
    password = tmp_path / "password"
    password.write_text("secret\n")
    options = (
        *("--zookeeper", chroot, "--zookeeper-sasl-username", "regent"),
        *("--zookeeper-sasl-password-file", password),
    )
    only_regent = make_acl("sasl", "regent", all=True)
    with Znodes(sasl_server.connect_string) as znodes:
        znodes.client.set_acls("/private/cluster/id", [only_regent])
    report = reported(await asyncio.to_thread(run_status, *options))
    assert report["clusterId"] == "abc"
    report = reported(await asyncio.to_thread(run_status, "--zookeeper", chroot))
    assert report["clusterId"] is None
    assert report["problems"] == [
        "/cluster/id: ZooKeeper answered NOAUTH: the right to read it is missing"
    ]


async def test_status_shows_everything_but_the_znodes_that_are_closed_to_it(
    sasl_server: ZooKeeper,
) -> None:
    chroot = "/partly-closed"
    nodes = {
        "/controller": b'{"version":1,"brokerid":1,"timestamp":"0"}',
        "/controller_epoch": b"7",
        "/brokers/topics/closed": b'{"partitions":{"0":[1]}}',
        "/brokers/topics/open": b'{"partitions":{"0":[1],"1":[1]}}',
        "/brokers/ids/1": b'{"version":5,"host":"h","port":1,"jmx_port":-1,"endpoints":["PLAINTEXT://h:1"],'
        b'"listener_security_protocol_map":{"PLAINTEXT":"PLAINTEXT"},"timestamp":"0"}',
    } | {
        f"/brokers/topics/open/partitions/{number}/state": b'{"controller_epoch":7,"leader":1,'
        b'"version":1,"leader_epoch":0,"isr":[1]}'
        for number in (0, 1)
    }
    closed = ["/brokers/topics/closed", "/brokers/topics/open/partitions/1/state"]
    only_regent = make_acl("sasl", "regent", all=True)
    with Znodes(sasl_server.connect_string) as znodes:
        for path, data in nodes.items():
            znodes.client.create(chroot + path, data, makepath=True)
        for path in closed:
            znodes.client.set_acls(chroot + path, [only_regent])
    outcome = await asyncio.to_thread(
        run_status, "--zookeeper", f"{sasl_server.connect_string}{chroot}"
    )
    assert outcome.exit_code == 6, outcome
    report = json.loads(outcome.stdout)
    assert report["problems"] == [
        f"{path}: ZooKeeper answered NOAUTH: the right to read it is missing" for path in closed
    ]
    assert report["controller"] == {"id": 1, "epoch": 7, "kind": "broker", "customResources": None}
    partitions = report["partitions"]
    assert (partitions["total"], partitions["online"], partitions["unknown"]) == (2, 1, 1)

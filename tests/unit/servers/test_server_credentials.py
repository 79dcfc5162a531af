"""What clients have to know: from ZooKeeper, and from a file."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path

import pytest

from regent.model.errors import ConfigurationError, ZooKeeperUnavailableError
from regent.model.scram_credential import ScramCredential
from regent.protocol.serving import CredentialsUnavailableError
from regent.servers.server_credentials import ServerCredentials
from regent.zk_data import paths
from regent.zk_data.config import encode_entity_config
from regent.zk_data.operations import ZNode

SCRAM = "salt=c2FsdA==,stored_key=c3RvcmVk,server_key=c2VydmVy,iterations=8192"


class ZNodes(dict[str, bytes]):
    """Some znodes, as ``ZooKeeperPort.get_data`` gives them."""

    is_available = True

    async def get_data(self, paths: Sequence[str]) -> Sequence[ZNode | None]:
        if not self.is_available:
            raise ZooKeeperUnavailableError("no server answers")
        return [ZNode(self[path], 0, 1, 1, 0) if path in self else None for path in paths]


async def test_a_scram_user_is_read_from_zookeeper() -> None:
    config = {"SCRAM-SHA-512": SCRAM, "producer_byte_rate": "1"}
    znodes = ZNodes({"/config/users/alice": encode_entity_config(config)})
    credentials = ServerCredentials(znodes.get_data)
    assert await credentials.scram_credential("SCRAM-SHA-512", "alice") == ScramCredential(
        salt=b"salt", stored_key=b"stored", server_key=b"server", iterations=8192
    )
    assert await credentials.scram_credential("SCRAM-SHA-256", "alice") is None
    assert await credentials.scram_credential("SCRAM-SHA-512", "bob") is None
    assert await credentials.password("alice") is None


@pytest.mark.parametrize(
    ("name", "encoded"),
    [
        ("alice", "alice"),
        ("a b*c~d/..%", "a%20b%2Ac%7Ed%2F..%25"),
        ("CN=ö,O=x", "CN%3D%C3%B6%2CO%3Dx"),
    ],
)
def test_a_users_node_is_named_as_by_kafka(name: str, encoded: str) -> None:
    assert paths.user_config(name) == f"/config/users/{encoded}"


@pytest.mark.parametrize("name", ["", ".", "..", "a" * 1_001])
async def test_a_name_that_no_znode_can_have_is_not_looked_up(name: str) -> None:
    """Long paths, and those that are relative, would end the session with ZooKeeper."""
    asked: list[Sequence[str]] = []

    async def get_data(paths: Sequence[str]) -> Sequence[ZNode | None]:
        asked.append(paths)
        return [None]

    credentials = ServerCredentials(get_data)
    assert await credentials.scram_credential("SCRAM-SHA-512", name) is None
    assert asked == []


@pytest.mark.parametrize(
    "value",
    [
        "",
        "salt=c2FsdA==",
        SCRAM.replace("8192", "many"),
        SCRAM.replace("c3RvcmVk", "c3RvcmV"),
        SCRAM.replace("c3RvcmVk", "!!!!"),
    ],
)
async def test_a_malformed_credential_is_none_that_could_be_used(value: str) -> None:
    znodes = ZNodes({"/config/users/alice": encode_entity_config({"SCRAM-SHA-512": value})})
    credentials = ServerCredentials(znodes.get_data)
    with pytest.raises(CredentialsUnavailableError, match="/config/users/alice") as caught:
        await credentials.scram_credential("SCRAM-SHA-512", "alice")
    assert "c2VydmVy" not in str(caught.value)


async def test_without_zookeeper_nobody_can_say() -> None:
    znodes = ZNodes()
    znodes.is_available = False
    with pytest.raises(CredentialsUnavailableError, match="no server answers"):
        await ServerCredentials(znodes.get_data).scram_credential("SCRAM-SHA-512", "alice")


async def test_plain_users_follow_file(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    file = tmp_path / "users.yaml"
    file.write_text("alice: secret\n'1': '2'\n")
    credentials = ServerCredentials(ZNodes().get_data, users_file=file)
    assert await credentials.password("alice") == "secret"
    assert await credentials.password("1") == "2"
    assert await credentials.password("bob") is None
    file.write_text("bob: another secret\n")
    assert await credentials.password("alice") is None
    assert await credentials.password("bob") == "another secret"
    with caplog.at_level(logging.ERROR):
        file.write_text("bob: [a secret in a list]\n")
        assert await credentials.password("bob") == "another secret"
        assert await credentials.password("bob") == "another secret"
    assert [record.message for record in caplog.records] == ["changed file of users not used"]


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"a: secret\na: other",
        b"- secret",
        b"a: 12345",
        b"secret: [",
        b"\xff\xfesecret",
        b"12345: a",
    ],
)
def test_a_file_without_users_is_named_and_not_shown(content: bytes, tmp_path: Path) -> None:
    file = tmp_path / "users.yaml"
    file.write_bytes(content)
    with pytest.raises(ConfigurationError, match=r"users\.yaml") as caught:
        ServerCredentials(ZNodes().get_data, users_file=file)
    assert "secret" not in str(caught.value)
    assert "12345" not in str(caught.value)


def test_a_file_that_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="cannot be read"):
        ServerCredentials(ZNodes().get_data, users_file=tmp_path / "none.yaml")

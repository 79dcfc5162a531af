"""Whose quota a client is subject to."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regent.model.errors import MalformedZNodeError
from regent.zk_data.client_quotas import QuotaEntity, decode_mutation_rate, quota_entities

USER, CLIENT = "alice", "tool"
PRECEDENCE = (
    ("/config/users/alice/clients/tool", True, True),
    ("/config/users/alice/clients/<default>", True, True),
    ("/config/users/alice", True, False),
    ("/config/users/<default>/clients/tool", True, True),
    ("/config/users/<default>/clients/<default>", True, True),
    ("/config/users/<default>", True, False),
    ("/config/clients/tool", False, True),
    ("/config/clients/<default>", False, True),
)
"""As KIP-55 lists it, and who shares what is granted."""


def test_the_most_specific_entity_comes_first() -> None:
    expected = [QuotaEntity(path, by_user=u, by_client=c) for path, u, c in PRECEDENCE]
    assert list(quota_entities(USER, CLIENT)) == expected


def test_names_are_encoded_as_in_paths() -> None:
    paths = [entity.path for entity in quota_entities("CN=a,O=*/b c", "<default>")]
    assert paths[0] == "/config/users/CN%3Da%2CO%3D%2A%2Fb%20c/clients/%3Cdefault%3E"
    assert paths[-1] == "/config/clients/<default>"


@pytest.mark.parametrize("name", ["", ".", "..", "x" * 1_001])
def test_what_is_no_name_of_a_znode_has_the_defaults(name: str) -> None:
    assert [entity.path for entity in quota_entities(name, name)] == [
        "/config/users/<default>/clients/<default>",
        "/config/users/<default>",
        "/config/clients/<default>",
    ]


@given(user=st.text(max_size=30), client_id=st.text(max_size=30))
def test_whatever_the_names_are_no_path_leaves_its_place(user: str, client_id: str) -> None:
    for entity in quota_entities(user, client_id):
        parts = entity.path.split("/")
        assert parts[:2] == ["", "config"]
        assert len(parts) == (6 if entity.by_user and entity.by_client else 4)
        assert not {"", ".", ".."} & set(parts[1:])


def content(config: dict[str, str]) -> bytes:
    return json.dumps({"version": 1, "config": config}).encode()


@pytest.mark.parametrize(
    ("data", "rate"),
    [
        (b"", None),
        (content({}), None),
        (content({"producer_byte_rate": "1024"}), None),
        (content({"controller_mutation_rate": "2.5"}), 2.5),
        (content({"controller_mutation_rate": "0"}), 0.0),
    ],
)
def test_a_rate_is_decoded(data: bytes, rate: float | None) -> None:
    assert decode_mutation_rate("/config/users/alice", data) == rate


@pytest.mark.parametrize("text", ["", "much", "-1", "nan", "inf"])
def test_what_is_no_rate_is_malformed(text: str) -> None:
    data = content({"controller_mutation_rate": text})
    with pytest.raises(MalformedZNodeError, match=r"^/config/users/alice: .* not a rate"):
        decode_mutation_rate("/config/users/alice", data)

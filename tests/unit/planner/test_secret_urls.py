"""URLs of workspaces in messages: what opens an object store is not in them."""

from __future__ import annotations

import pytest

from regent_rebalance.errors import InvalidInputError
from regent_rebalance.secret_urls import masked, shown
from regent_rebalance.workspace import Workspace


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("/var/history", "/var/history"),
        ("s3://bucket/regent", "s3://bucket/regent"),
        ("s3://KEY:secret@bucket/regent", "s3://KEY:***@bucket/regent"),
        ("s3a://KEY:a/b+c d@e@bucket/regent", "s3a://KEY:***@bucket/regent"),
        (
            "abfss://data@account.dfs.core.windows.net/x",
            "abfss://data@account.dfs.core.windows.net/x",
        ),
        ("abfss://:secret@account/x", "abfss://:***@account/x"),
        ("hdfs://namenode:8020/regent", "hdfs://namenode:8020/regent"),
        (
            "s3://K:s@b/x?endpoint_override=store:9000&scheme=http&sas_token=abc%3D",
            "s3://K:***@b/x?endpoint_override=store:9000&scheme=http&sas_token=***",
        ),
    ],
)
def test_what_is_secret_in_a_url_is_not_shown(url: str, expected: str) -> None:
    assert shown(url) == expected


def test_a_url_in_a_message_is_masked_in_every_form() -> None:
    url = "s3://KEY:sec%2Fret@bucket/regent?token=t0ken"
    said = f"'{url}': s3a://KEY:sec%2Fret@bucket/regent/cluster=c; signed with sec/ret and t0ken"
    assert masked(said, url) == (
        "'s3://KEY:***@bucket/regent?token=***': s3a://KEY:***@bucket/regent/cluster=c; signed with"
        " *** and ***"
    )


def test_a_url_that_is_not_known_is_masked_too() -> None:
    said = "cannot open s3a://KEY:secret@bucket/a?sig=abc, and s3://other:pw@b: user a@b.test"
    assert masked(said) == (
        "cannot open s3a://KEY:***@bucket/a?sig=***, and s3://other:***@b: user a@b.test"
    )


@pytest.mark.parametrize(
    "url",
    [
        "s3://KEY:s3cret@bucket/regent?bogus=t0ken",
        "s3://KEY:s3c/ret@bucket/regent",
        "s3a://KEY:s3c ret@bucket/regent",
        "gs://KEY:s3cret@bucket/regent",
    ],
)
def test_a_workspace_that_cannot_be_reached_names_no_credentials(url: str) -> None:
    with pytest.raises(InvalidInputError) as refused:
        Workspace(url)
    said = str(refused.value)
    assert "cannot be reached" in said
    assert "://KEY:***@bucket/regent" in said
    assert "s3c" not in said
    assert "t0ken" not in said

"""Whether a CustomResourceDefinition is being deleted."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from aiohttp import web

from regent.kube.client import KubeClient
from regent.kube.definition_end import DefinitionEnd
from regent.kube.errors import KubeApiError
from tests.unit.kube.small_server import TOPIC, Server


def definition(**metadata: Any) -> web.Response:
    return web.json_response({"kind": "CustomResourceDefinition", "metadata": metadata})


def refusal(status: int) -> web.Response:
    return web.json_response({"kind": "Status", "message": "no"}, status=status)


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (definition(name="kafkatopics.kafka.regent.dev"), False),
        (definition(deletionTimestamp="2026-01-01T00:00:00Z"), True),
        (refusal(404), True),
        (refusal(403), False),
    ],
)
async def test_the_api_server_says_so(
    client: KubeClient, server: Server, answer: web.Response, expected: bool
) -> None:
    server.answers = [answer]
    assert await DefinitionEnd(client, TOPIC).has_begun() is expected
    ((_, path, _, _),) = server.requests
    assert path.endswith("/customresourcedefinitions/kafkatopics.kafka.regent.dev")


async def test_while_it_does_not_answer_nothing_is_concluded(
    client: KubeClient, server: Server
) -> None:
    server.answers = [refusal(500)]
    with pytest.raises(KubeApiError):
        await DefinitionEnd(client, TOPIC).has_begun()


async def test_a_missing_right_is_said_once(
    client: KubeClient, server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    server.answers = [refusal(403), refusal(403)]
    end = DefinitionEnd(client, TOPIC)
    with caplog.at_level(logging.WARNING):
        assert not await end.has_begun()
        assert not await end.has_begun()
    (entry,) = caplog.messages
    assert "missing right: get customresourcedefinitions kafkatopics" in entry

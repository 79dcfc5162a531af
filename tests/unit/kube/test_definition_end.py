"""Whether an object is deleted together with its CustomResourceDefinition."""

from __future__ import annotations

import asyncio
import logging
from datetime import UTC, datetime
from typing import Any

import pytest
from aiohttp import web

from regent.kube.client import KubeClient
from regent.kube.definition_end import DefinitionEnd
from regent.kube.errors import KubeApiError, KubeError, KubeRightLostError
from regent.kube.waiting import cancel
from tests.support.waiting import until
from tests.unit.kube.small_server import STORED, TOPIC, Server


def definition(**metadata: Any) -> web.Response:
    return web.json_response(
        {"kind": "CustomResourceDefinition", "metadata": {**STORED, **metadata}}
    )


def refusal(status: int) -> web.Response:
    return web.json_response({"kind": "Status", "message": "no"}, status=status)


def kinds(*verbs: str, name: str = "kafkatopics") -> web.Response:
    return web.json_response(
        {
            "kind": "APIResourceList",
            "groupVersion": "kafka.regent.dev/v1alpha1",
            "resources": [
                {"name": "brokerdrains", "verbs": ["create", "get"]},
                {"name": f"{name}/status", "verbs": ["get", "patch", "update"]},
                {"name": name, "verbs": list(verbs)},
            ],
        }
    )


DELETED_AT = datetime(2026, 1, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (definition(creationTimestamp="2026-01-01T11:59:59Z"), False),
        # It is another one than that with which the object was deleted.
        (definition(creationTimestamp="2026-01-01T12:00:00Z"), True),
        (definition(creationTimestamp="2026-01-02T12:00:00Z"), True),
        (definition(deletionTimestamp="2026-01-01T00:00:00Z"), True),
        (refusal(404), True),
    ],
)
async def test_the_api_server_says_so(
    client: KubeClient, server: Server, answer: web.Response, expected: bool
) -> None:
    server.answers = [answer]
    assert await DefinitionEnd(client, TOPIC).explains(DELETED_AT) is expected
    ((_, path, _, _),) = server.requests
    assert path.endswith("/customresourcedefinitions/kafkatopics.kafka.regent.dev")


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (kinds("create", "delete", "get", "patch"), False),
        (kinds("delete", "get"), True),
        # It is shown to every authenticated user, unless that was taken away.
        (refusal(403), False),
    ],
)
async def test_without_the_right_to_read_it_what_can_be_done_with_its_objects_says_so(
    client: KubeClient, server: Server, answer: web.Response, expected: bool
) -> None:
    server.answers = [refusal(403), answer]
    end = DefinitionEnd(client, TOPIC, shown_within_s=0.0)
    assert await end.explains(DELETED_AT) is expected
    assert [path for _, path, _, _ in server.requests][1:] == ["/apis/kafka.regent.dev/v1alpha1"]


@pytest.mark.parametrize("answer", [refusal(404), refusal(503), kinds("create", name="others")])
async def test_from_a_kind_that_is_not_shown_nothing_is_concluded(
    client: KubeClient, server: Server, answer: web.Response
) -> None:
    """An API server that has just started does not show it yet."""
    server.answers = [refusal(403), answer]
    with pytest.raises(KubeError):
        await DefinitionEnd(client, TOPIC, shown_within_s=0.0).explains(DELETED_AT)


@pytest.mark.parametrize(
    "before", [definition(creationTimestamp="2025-01-01T00:00:00Z"), refusal(404)]
)
async def test_whoever_takes_the_right_away_has_not_said_that_topics_may_go(
    client: KubeClient, server: Server, before: web.Response
) -> None:
    """Who removes an installation removes rights and definitions in any order."""
    server.answers = [before, refusal(403)]
    end = DefinitionEnd(client, TOPIC)
    await end.explains(DELETED_AT)
    with pytest.raises(KubeRightLostError, match=r"kafkatopics\.kafka\.regent\.dev"):
        await end.explains(DELETED_AT)


async def test_whether_there_is_the_right_is_known_before_anything_is_deleted(
    client: KubeClient, server: Server
) -> None:
    server.answers = [refusal(500), definition(creationTimestamp="2025-01-01T00:00:00Z")]
    end = DefinitionEnd(client, TOPIC)
    learning = asyncio.create_task(end.learn_right(every_s=3600.0, retry_s=0.0))

    await until(lambda: end._was_readable, "the right to be known")
    assert len(server.requests) == 2
    await cancel((learning,))
    server.answers = [refusal(403)]
    with pytest.raises(KubeRightLostError):
        await end.explains(DELETED_AT)


async def test_a_missing_right_is_said_once(
    client: KubeClient, server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    server.answers = [refusal(403) for _ in range(4)]
    end = DefinitionEnd(client, TOPIC, shown_within_s=0.0)
    with caplog.at_level(logging.WARNING):
        assert not await end.explains(DELETED_AT)
        assert not await end.explains(DELETED_AT)
    (entry,) = caplog.messages
    assert "missing right: get customresourcedefinitions kafkatopics" in entry


async def test_those_who_ask_at_the_same_moment_share_a_question(
    client: KubeClient, server: Server
) -> None:
    """Half of all KafkaTopics may be deleted at once."""
    server.answers = [
        definition(creationTimestamp="2025-01-01T00:00:00Z"),
        definition(deletionTimestamp="2026-01-01T00:00:00Z"),
    ]
    server.gate.clear()
    end = DefinitionEnd(client, TOPIC)
    first = [asyncio.create_task(end.explains(DELETED_AT)) for _ in range(3)]
    await server.asked.wait()
    # What is asked already may be answered by what was before these were deleted.
    later = [asyncio.create_task(end.explains(DELETED_AT, age_s)) for age_s in (0.0, 60.0, 0.0)]
    later[0].cancel()
    server.gate.set()
    assert await asyncio.gather(*first) == [False] * 3
    assert await asyncio.gather(*later[1:]) == [True] * 2
    assert len(server.requests) == 2


async def test_all_who_share_a_question_learn_that_it_has_failed(
    client: KubeClient, server: Server
) -> None:
    server.answers = [refusal(500), definition(deletionTimestamp="2026-01-01T00:00:00Z")]
    end = DefinitionEnd(client, TOPIC)
    asking = [end.explains(DELETED_AT) for _ in range(2)]
    failed = await asyncio.gather(*asking, return_exceptions=True)
    assert [type(each) for each in failed] == [KubeApiError] * 2
    assert await end.explains(DELETED_AT)

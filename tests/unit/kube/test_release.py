"""What `regent release` makes of the Deployment that it is given."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from aiohttp import web

from regent.kube import release as release_module
from regent.kube.errors import KubeUnavailableError
from regent.kube.release import Deployment, label_selector, release
from regent.model.errors import ConfigurationError
from tests.unit.kube.small_server import LIST, STORED, Credentials, Server


def test_pods_are_found_by_every_form_of_a_selector() -> None:
    """A Deployment of one's own need not have the chart's ``matchLabels``; it is scaled to zero
    before its pods are asked for."""
    expressions = [
        {"key": "tier", "operator": "In", "values": ["kafka", "zk"]},
        {"key": "canary", "operator": "DoesNotExist"},
        {"key": "app", "operator": "Exists"},
        {"key": "zone", "operator": "NotIn", "values": ["b"]},
    ]
    assert label_selector({"matchLabels": {"a": "b", "c": "d"}}) == "a=b,c=d"
    assert (
        label_selector({"matchLabels": {"a": "b"}, "matchExpressions": expressions})
        == "a=b,tier in (kafka,zk),!canary,app,zone notin (b)"
    )


@pytest.mark.parametrize(
    "text", ["", "kafka", "kafka/", "/regent", "a/b/c", "kafka/.", "kafka/re gent", "kafka/a?b"]
)
def test_what_is_no_name_of_a_deployment_is_refused(text: str) -> None:
    with pytest.raises(ConfigurationError, match="is not NAMESPACE/NAME of a Deployment"):
        Deployment.parse(text)


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch, credentials: Credentials) -> list[str]:
    """What a release reports."""
    monkeypatch.setattr(release_module, "login", credentials)
    return []


def not_found() -> web.Response:
    return web.Response(status=404, text="404 page not found\n")


def namespace() -> web.Response:
    return web.json_response({"kind": "Namespace", "metadata": STORED})


def discovery_answer() -> web.Response:
    return web.json_response({"kind": "APIResourceList", "groupVersion": "v1"})


def no_topics() -> web.Response:
    return web.json_response({**LIST, "items": []})


async def test_a_misspelled_namespace_is_not_one_without_topics(
    server: Server, said: list[str]
) -> None:
    server.answers = [namespace(), not_found(), discovery_answer()]
    with pytest.raises(ConfigurationError, match="there is no namespace 'shpo'; correct --names"):
        await release(
            namespaces=("shop", "shpo"),
            deployment=Deployment("kafka", "regent"),
            dry_run=False,
            report=said.append,
        )
    assert said == [], "not even the Deployment was scaled"


async def test_namespaces_that_are_all_gone_do_not_mean_all_namespaces(
    server: Server, said: list[str]
) -> None:
    server.answers = [not_found(), discovery_answer()]
    await release(
        namespaces=("shop",),
        deployment=None,
        dry_run=False,
        skip_forbidden=True,
        report=said.append,
    )
    assert said == [
        "skipped namespace shop: it does not exist",
        "0 of 0 KafkaTopics released; their topics stay in Kafka",
    ]


async def test_a_namespace_that_may_not_be_looked_up_is_listed(
    server: Server, said: list[str]
) -> None:
    """Who releases in one namespace need not have the right to read the namespace itself."""
    forbidden = web.json_response({"kind": "Status", "message": "no right"}, status=403)
    server.answers = [forbidden, no_topics(), no_topics()]
    await release(namespaces=("shop",), deployment=None, dry_run=False, report=said.append)
    assert said == ["0 of 0 KafkaTopics released; their topics stay in Kafka"]


async def test_what_answers_404_to_everything_is_no_cluster_without_topics(
    server: Server, said: list[str]
) -> None:
    server.answers = [not_found(), not_found()]
    with pytest.raises(KubeUnavailableError, match="what answers is no API server; correct the"):
        await release(namespaces=(), deployment=None, dry_run=False, report=said.append)
    assert said == []


@pytest.mark.parametrize(
    "discovery",
    [
        discovery_answer,
        lambda: web.json_response({"kind": "Status", "message": "no right"}, status=403),
    ],
)
async def test_a_cluster_without_the_definition_has_no_topics(
    server: Server, said: list[str], discovery: Callable[[], web.Response]
) -> None:
    server.answers = [
        *(namespace(), namespace(), not_found()),
        *(discovery(), not_found(), discovery()),
    ]
    await release(namespaces=("a", "b"), deployment=None, dry_run=False, report=said.append)
    assert said == [
        "there is no CustomResourceDefinition of KafkaTopics, so there are none",
        "0 of 0 KafkaTopics released; their topics stay in Kafka",
    ]

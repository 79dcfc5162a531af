"""What the chart renders for plans on Spark."""

from __future__ import annotations

from typing import Any

import pytest

from regent.settings import Settings
from sandbox.errors import CommandError
from tests.support.helm_chart import Render, Rendered, container_of, manifests, settings_of

pytestmark = pytest.mark.integration

SPARK: dict[str, Any] = {
    "planner__spark__enabled": True,
    "planner__spark__images": ["example.test/planner:*"],
    "planner__spark__serviceAccounts": ["spark", "planner"],
    "planner__spark__workspaces": ["s3a://bucket/plans", "file:///plans"],
}


def settings(rendered: Rendered) -> Settings:
    return Settings(**settings_of(rendered))


def rules(rendered: Rendered) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = rendered["ClusterRole", "kafka-demo-regent"]["rules"]
    return found


def of_spark(rules: list[dict[str, Any]]) -> dict[str, list[str]]:
    wanted = ("sparkapplications", "secrets", "pods/log")
    return {
        resource: rule["verbs"]
        for rule in rules
        for resource in rule["resources"]
        if resource in wanted
    }


def test_drivers_reach_every_pod_by_one_name(render: Render) -> None:
    rendered = render(**SPARK)
    service = rendered["Service", "demo-regent-exchange"]["spec"]
    assert (service["clusterIP"], service["publishNotReadyAddresses"]) == ("None", True)
    selector = rendered["Deployment", "demo-regent"]["spec"]["selector"]["matchLabels"]
    assert service["selector"] == selector
    container = container_of(rendered)
    assert {"name": "exchange", "containerPort": 8090} in container["ports"]
    given = settings(rendered)
    assert given.planner_exchange_url == "http://demo-regent-exchange.kafka.svc:8090"
    assert (given.planner_exchange_host, given.planner_exchange_port) == ("0.0.0.0", 8090)
    assert given.spark_images == ("example.test/planner:*",)
    assert given.spark_service_accounts == ("spark", "planner")
    assert given.spark_workspaces == ("s3a://bucket/plans", "file:///plans")


def test_with_a_certificate_it_is_https(render: Render) -> None:
    files = {
        "planner_exchange_tls_certificate_file": "/tls/tls.crt",
        "planner_exchange_tls_key_file": "/tls/tls.key",
    }
    given = settings(render(**SPARK, settings=files, planner__spark__port=8443))
    assert given.planner_exchange_url == "https://demo-regent-exchange.kafka.svc:8443"


def test_regent_may_not_read_secrets(render: Render) -> None:
    assert of_spark(rules(render(**SPARK))) == {
        "sparkapplications": ["get", "list", "create", "delete"],
        "secrets": ["create"],
        "pods/log": ["get"],
    }
    role = render(**SPARK, namespaces=["shop"])["Role", "kafka-demo-regent"]
    assert of_spark(role["rules"])["secrets"] == ["create"]


def test_drivers_are_let_in(render: Render) -> None:
    policy: dict[str, Any] = {
        "networkPolicy__enabled": True,
        "networkPolicy__brokers__ports": [9092],
        "warmStandby__enabled": False,
    }
    rendered = render(**SPARK, **policy)
    (rule,) = rendered["NetworkPolicy", "demo-regent"]["spec"]["ingress"]
    assert rule["ports"] == [{"port": 8090, "protocol": "TCP"}]
    (peer,) = rule["from"]
    assert peer["podSelector"] == {"matchLabels": {"spark-role": "driver"}}
    with pytest.raises(CommandError, match=r"networkPolicy\.planner\.from is empty"):
        manifests(**SPARK, **policy, networkPolicy__planner__from=[])


def test_without_images_it_is_refused() -> None:
    with pytest.raises(CommandError, match=r"planner\.spark\.images is empty"):
        manifests(planner__spark__enabled=True)

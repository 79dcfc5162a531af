"""Values of the chart: what is refused, by which name, and what null means."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from sandbox.errors import CommandError
from tests.support.helm_chart import CHART, Render, settings_of
from tests.support.helm_chart import EVICTION_HOOK as _HOOK
from tests.support.soak import sample

pytestmark = pytest.mark.integration


_EXTERNAL = {"name": "EXTERNAL", "port": 9093}
_EVERYTHING = {
    **_HOOK,
    "metrics__podMonitor__enabled": True,
    "networkPolicy__enabled": True,
    "networkPolicy__brokers__to": [{"podSelector": {}}],
    "networkPolicy__brokers__ports": [9092],
}


_ISSUED = {
    "evictionHook__certificates__certManager": {
        "enabled": True,
        "issuerRef": {"name": "issuer", "kind": "ClusterIssuer"},
    }
}
"""Certificates from an issuer: helm draws keys for half a second."""


def value_paths() -> list[str]:
    """Every value that the templates look into, as keyword arguments for ``render``."""
    as_they_are = ("Context", "Probe", "resources", "strategy")

    def walk(values: dict[str, Any], prefix: str) -> Iterator[str]:
        for name, value in values.items():
            yield prefix + name
            if isinstance(value, dict) and not name.endswith(as_they_are):
                yield from walk(value, f"{prefix}{name}__")

    return list(walk(yaml.safe_load((CHART / "values.yaml").read_text()), ""))


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"zookeeper": ""}, "zookeeper"),
        ({"zookeeper": "zk:2181 zk:2182"}, "zookeeper"),
        ({"replicas": -1}, "replicas"),
        ({"replica": 2}, "replica"),
        ({"settings": {"http_port": 1}}, "http_port"),
        ({"settings": {"cluster_name": "east"}}, "cluster_name"),
        ({"cluster": {"name": "East!", "default": False}}, "name"),
        ({"settings": {"controller_id": 1_000_000_001}}, "'controller_id' not allowed"),
        ({"settings": {"mode": "client"}}, "mode"),
        ({"mode": "observer"}, "mode"),
        ({"mode": "client", "endpoint__enabled": True}, "mode is client"),
        ({"mode": "client", "settings__warm_standby": True}, "mode is client"),
        ({"warmStandby__port": 8080}, "http.port and warmStandby.port are both 8080"),
        (
            {
                "endpoint__enabled": True,
                "endpoint__listeners": [{"name": "EXTERNAL", "port": 9096}],
            },
            "the port of EXTERNAL in endpoint.listeners and warmStandby.port are both 9096",
        ),
        ({"settings": {"log_levle": "debug"}}, "log_levle"),
        ({"settings": {"log_level": "loud"}}, "log_level"),
        ({"settings": {"zookeeper_tls": "yes"}}, "zookeeper_tls"),
        ({"settings": {"broker_request_timeout_ms": 5}}, "broker_request_timeout_ms"),
        ({"namespaces": ["Not_A_Namespace"]}, "namespaces"),
        ({"image__digest": "latest"}, "digest"),
        ({"networkPolicy__enabled": True}, "networkPolicy.brokers is empty"),
        (
            {
                "networkPolicy__enabled": True,
                "networkPolicy__brokers__ports": [9092],
                "endpoint__enabled": True,
            },
            "networkPolicy.endpoint.from is empty",
        ),
        ({"evictionHook__enabled": True}, "evictionHook.brokerPods is empty: name labels"),
        (
            {**_HOOK, "evictionHook__podNamespaces": []},
            "evictionHook.podNamespaces is empty",
        ),
        (
            {**_HOOK, "namespaces": ["a"], "evictionHook__drainNamespace": "b"},
            'evictionHook.drainNamespace is "b", which is not among namespaces',
        ),
        (
            {**_HOOK, "evictionHook__certificates__secretName": "mine"},
            "certificates.secretName needs caBundle",
        ),
        (
            {
                **_HOOK,
                "evictionHook__certificates__secretName": "mine",
                "evictionHook__certificates__certManager__enabled": True,
            },
            "has both secretName and certManager: choose one",
        ),
        (
            {**_HOOK, "evictionHook__certificates__certManager__enabled": True},
            "certManager needs issuerRef",
        ),
        ({**_HOOK, "evictionHook__failurePolicy": "Open"}, "failurePolicy"),
        ({**_HOOK, "evictionHook__mode": "All"}, "mode"),
        ({"networkPolicy__brokers__ports": ["kafka"]}, "ports"),
        ({"networkPolicy__brokers__to": [{"podSelektor": {}}]}, "podSelektor"),
        (
            {"endpoint__enabled": True, "endpoint__advertisedHost": "regent", "replicas": 1},
            'is "regent", one name for 1 pods with the strategy RollingUpdate',
        ),
        (
            {
                "endpoint__enabled": True,
                "endpoint__advertisedHost": "regent",
                "strategy": {"type": "Recreate"},
            },
            'is "regent", one name for 2 pods with the strategy Recreate',
        ),
        (
            {
                "endpoint__enabled": True,
                "endpoint__listeners": [{**_EXTERNAL, "advertisedHost": "a"}],
            },
            'listener EXTERNAL in endpoint.listeners is "a", one name for 2 pods',
        ),
        ({"endpoint__listeners": [{"name": "EXTERNAL"}]}, "port"),
        ({"endpoint__listeners": [{**_EXTERNAL, "host": "a"}]}, "host"),
        ({"endpoint__listeners": [{**_EXTERNAL, "name": "A://b"}]}, "name"),
        ({"endpoint__listeners": [{**_EXTERNAL, "advertisedHost": "a,b"}]}, "advertisedHost"),
        (
            {
                "endpoint__enabled": True,
                "endpoint__listeners": [_EXTERNAL, {"name": "External", "port": 9094}],
            },
            "endpoint.listeners has External twice",
        ),
        ({"zookeeper": "a:2181/kafka,b:2181/kafka"}, "the chroot stands once"),
        ({"zookeeper": "a:2181/kafka,b:2181"}, "the chroot stands once"),
        (
            {"settings": {"lease_name": "mine"}},
            'settings.lease_name is "mine", which has no effect',
        ),
        ({"settings": {"warm_standby": False}}, "settings.warm_standby is false, which has no"),
        ({"settings": {"replica_port": 1}}, "settings.replica_port is 1, which has no effect"),
        ({**_HOOK, "settings": {"eviction_mode": "Replicas"}}, "settings.eviction_mode is"),
        (
            {"endpoint__enabled": True, "settings": {"endpoint_advertised_host": "kafka.test"}},
            "settings.endpoint_advertised_host is .*the address of each pod",
        ),
        ({"settings": {"topic_name_rules": ["team-a"]}}, "topic_name_rules"),
        ({"endpoint__advertisedHost": "regent:9092"}, "advertisedHost"),
        ({"settings": {"election_path": "/brokers/regent"}}, "election_path"),
        ({**_HOOK, "evictionHook__brokerPods": {"app kafka": "yes"}}, "brokerPods"),
        ({**_HOOK, "evictionHook__brokerPods": {"app": "a=b"}}, "brokerPods"),
        ({"podDisruptionBudget__maxUnavailable": "half"}, "maxUnavailable"),
        ({"planner__spark__workspaces": ["s3a://bucket/plans/../all"]}, "workspaces"),
        ({"planner__spark__workspaces": ["s3a://key:secret@bucket/plans"]}, "workspaces"),
    ],
)
def test_bad_values_are_refused(render: Render, values: dict[str, Any], message: str) -> None:
    with pytest.raises(CommandError, match=message):
        render(**values)


def test_what_regent_takes_is_not_refused(render: Render) -> None:
    settings = {
        "topic_name_rules": ["team-a=team-a.*", "* = {namespace}.*", "platform=*"],
        "endpoint_super_users": ["User:kafka", "User:CN=broker-1,O=Example: Kafka"],
        "endpoint_further_listeners": ["EXTERNAL://[::1]:9093", "Other://:65535"],
        "replica_advertised_host": "fe80::1%eth0",
        "endpoint_advertised_host": "::ffff:10.0.0.1",
        "election_path": "/regent/elections/brokers",
        "warm_standby": True,
        "replica_port": 9096,
    }
    pods = {"app.kubernetes.io/name": "kafka", "tier": ""}
    rendered = render(
        **{**_HOOK, "evictionHook__brokerPods": pods},
        settings=settings,
        zookeeper="a,b:2182/odd,chroot",
        podDisruptionBudget__maxUnavailable="50%",
    )
    assert settings_of(rendered).items() >= settings.items()


@pytest.mark.parametrize("path", sample(value_paths(), "chart"))
def test_null_means_nothing_or_is_refused_by_name(render: Render, path: str) -> None:
    certificates = {} if "certificates" in path else _ISSUED
    try:
        rendered = render(**{**_EVERYTHING, **certificates, path: None})
    except CommandError as error:
        message = str(error)
        assert "values don't meet the specifications of the schema" in message
        assert path.rpartition("__")[2] in message
    else:
        assert ("Deployment", "demo-regent") in rendered


@pytest.mark.parametrize("setting", ["endpoint_port", "endpoint_advertised_host"])
def test_a_setting_that_is_null_is_left_to_the_values_that_make_it(
    render: Render, setting: str
) -> None:
    rendered = render(endpoint__enabled=True, settings={setting: None})
    assert settings_of(rendered)["endpoint_port"] == 9092

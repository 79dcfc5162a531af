"""NetworkPolicies of the chart: nobody is let in or out by a list that is empty by mistake."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.helm_chart import EVICTION_HOOK, Render

pytestmark = pytest.mark.integration

PROMETHEUS = [{"namespaceSelector": {"matchLabels": {"team": "monitoring"}}}]
BROKERS = [{"ipBlock": {"cidr": "10.1.0.0/16"}}]
NAME = ("NetworkPolicy", "demo-regent")


def policy(render: Render, **values: Any) -> dict[str, Any]:
    given = {
        "networkPolicy__enabled": True,
        "networkPolicy__brokers__to": BROKERS,
        "warmStandby__enabled": False,
        **values,
    }
    return dict(render(**given)[NAME]["spec"])


def tcp(*ports: int) -> list[dict[str, Any]]:
    return [{"port": port, "protocol": "TCP"} for port in ports]


def test_nobody_comes_in_unless_named(render: Render) -> None:
    spec = policy(render)
    assert spec["policyTypes"] == ["Ingress", "Egress"]
    assert spec["ingress"] == []


def test_who_is_named_reaches_his_port_only(render: Render) -> None:
    spec = policy(
        render,
        http__port=8081,
        networkPolicy__metrics__from=PROMETHEUS,
        endpoint__enabled=True,
        endpoint__port=9095,
        endpoint__listeners=[{"name": "EXTERNAL", "port": 9096}],
        networkPolicy__endpoint__from=BROKERS,
    )
    assert spec["ingress"] == [
        {"ports": tcp(8081), "from": PROMETHEUS},
        {"ports": tcp(9095, 9096), "from": BROKERS},
    ]


def test_it_selects_the_pods_of_the_deployment_and_another_one_that_of_the_hook(
    render: Render,
) -> None:
    rendered = render(networkPolicy__enabled=True, networkPolicy__brokers__to=BROKERS)
    deployment = rendered["Deployment", "demo-regent"]["spec"]
    selector = rendered[NAME]["spec"]["podSelector"]
    assert selector == deployment["selector"]
    hook = rendered["NetworkPolicy", "demo-regent-release"]["spec"]
    labels = rendered["Job", "demo-regent-release"]["spec"]["template"]["metadata"]["labels"]
    assert hook["podSelector"]["matchLabels"].items() <= labels.items()
    assert hook["ingress"] == []
    assert hook["egress"] == rendered[NAME]["spec"]["egress"][:2], "names and the API server"


def test_what_regent_needs_is_let_out(render: Render) -> None:
    zookeeper = "zk-0:2182,[fd00::1]:2183,zk-2/kafka:9"
    dns, api_server, servers, brokers = policy(render, zookeeper=zookeeper)["egress"]
    assert {"port": 53, "protocol": "UDP"} in dns["ports"]
    assert dns["to"]
    assert api_server == {"ports": tcp(443, 6443)}
    assert servers == {"ports": tcp(2182, 2183, 2181)}
    assert brokers == {"to": BROKERS}


def test_peers_and_ports_narrow_it(render: Render) -> None:
    _, api_server, servers, brokers = policy(
        render,
        networkPolicy__apiServer={"to": BROKERS, "ports": [443]},
        networkPolicy__zookeeper={"to": PROMETHEUS, "ports": [12181]},
        networkPolicy__brokers__ports=[9091, 9092],
    )["egress"]
    assert api_server == {"to": BROKERS, "ports": tcp(443)}
    assert servers == {"to": PROMETHEUS, "ports": tcp(12181)}
    assert brokers == {"to": BROKERS, "ports": tcp(9091, 9092)}


def test_the_api_server_reaches_the_eviction_hook(render: Render) -> None:
    hook = {**EVICTION_HOOK, "evictionHook__port": 9443}
    assert policy(render, **hook)["ingress"] == [{"ports": tcp(9443)}]
    named = policy(render, **hook, networkPolicy__evictionHook__from=BROKERS)
    assert named["ingress"] == [{"ports": tcp(9443), "from": BROKERS}]


@pytest.mark.parametrize(
    "values", [{"warmStandby__enabled": True}, {"settings__warm_standby": True}]
)
def test_pods_that_know_each_other_reach_each_other(render: Render, values: dict[str, Any]) -> None:
    spec = policy(render, warmStandby__port=9999, **values)
    pods = [{"podSelector": spec["podSelector"]}]
    assert spec["ingress"] == [{"ports": tcp(9999), "from": pods}]
    assert spec["egress"][-1] == {"ports": tcp(9999), "to": pods}

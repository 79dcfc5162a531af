"""Settings of the eviction hook: what is refused, with which message."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from regent.model.errors import ConfigurationError
from regent.resources.broker_drain import DrainMode
from regent.servers.eviction_settings import eviction_settings, eviction_tls_files
from regent.settings.loading import load_settings

GIVEN: dict[str, Any] = {
    "zookeeper": "zk:1",
    "eviction_port": 8443,
    "eviction_pods": "app=kafka, tier=",
    "eviction_namespace": "kafka",
}


def test_without_a_port_there_is_no_hook() -> None:
    assert eviction_settings(load_settings({"zookeeper": "zk:1"})) is None


def test_settings_become_those_of_the_hook() -> None:
    settings = eviction_settings(
        load_settings({**GIVEN, "eviction_mode": "Replicas", "cluster_name": "east"})
    )
    assert settings is not None
    assert settings.pod_labels == {"app": "kafka", "tier": ""}
    assert settings.mode is DrainMode.REPLICAS
    assert settings.drain_name(4) == "eviction-east-broker-4"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"without_kubernetes": True}, "eviction_port is 8443, but without_kubernetes is set"),
        ({"eviction_pods": ""}, "eviction_port needs eviction_pods: labels that"),
        ({"eviction_namespace": None}, "eviction_port needs eviction_namespace"),
        (
            {"namespaces": ("a", "b")},
            "eviction_namespace is 'kafka', which is not served: choose one of a, b",
        ),
    ],
)
def test_settings_that_lack_another_one_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        eviction_settings(load_settings({**GIVEN, **changes}))


def test_a_label_without_a_value_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="'app' is no label: write NAME=VALUE"):
        load_settings({**GIVEN, "eviction_pods": "app"})


def test_a_webhook_needs_a_certificate() -> None:
    with pytest.raises(ConfigurationError, match="needs eviction_certificate_file and eviction_k"):
        eviction_tls_files(load_settings({**GIVEN, "eviction_key_file": Path("key.pem")}))

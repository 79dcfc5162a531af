"""What the chart renders to keep a history of the cluster."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from regent.cli.sample import sample
from regent.settings.loading import load_settings
from sandbox.errors import CommandError
from tests.support.helm_chart import Render, Rendered, manifests

pytestmark = pytest.mark.integration

SAMPLING: dict[str, Any] = {
    "sampling__enabled": True,
    "sampling__image__repository": "example.test/regent-sample",
}
CRON_JOB = ("CronJob", "demo-regent-sample")
CLAIM = ("PersistentVolumeClaim", "demo-regent-history")


def pod(rendered: Rendered) -> dict[str, Any]:
    found: dict[str, Any] = rendered[CRON_JOB]["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    return found


def arguments(rendered: Rendered) -> list[str]:
    (container,) = pod(rendered)["containers"]
    assert container["command"] == ["regent"]
    given: list[str] = container["args"]
    return given


def test_samples_go_into_a_volume_that_stays(render: Render) -> None:
    rendered = render(**SAMPLING, sampling__volume__storageClassName="fast")
    claim = rendered[CLAIM]
    assert claim["metadata"]["annotations"] == {"helm.sh/resource-policy": "keep"}
    assert claim["spec"] == {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "fast",
        "resources": {"requests": {"storage": "10Gi"}},
    }
    spec = rendered[CRON_JOB]["spec"]
    assert (spec["schedule"], spec["concurrencyPolicy"]) == ("*/5 * * * *", "Forbid")
    (container,) = pod(rendered)["containers"]
    assert container["image"].startswith("example.test/regent-sample:")
    (mounted,) = (each for each in container["volumeMounts"] if each["name"] == "history")
    (volume,) = (each for each in pod(rendered)["volumes"] if each["name"] == "history")
    assert mounted["mountPath"] == arguments(rendered)[1] == "/history"
    assert volume["persistentVolumeClaim"] == {"claimName": "demo-regent-history"}


def test_regent_takes_the_arguments_and_the_settings(render: Render, tmp_path: Path) -> None:
    rendered = render(**SAMPLING, sampling__retention="7d")
    file = tmp_path / "settings.yaml"
    file.write_text(rendered["ConfigMap", "demo-regent"]["data"]["settings.yaml"])
    command, *rest = (
        each.replace("/etc/regent/settings.yaml", str(file)) for each in arguments(rendered)
    )
    assert command == "sample"
    parsed = sample.make_context(command, rest).params
    assert (parsed["workspace"], parsed["retention"]) == ("/history", 7 * 86_400_000)
    assert load_settings({}, file=parsed["config_file"]).zookeeper == "zk:2181/kafka"
    assert "--retention" not in " ".join(arguments(render(**SAMPLING, sampling__retention="")))


def test_a_claim_of_somebody_else_is_used_as_it_is(render: Render) -> None:
    rendered = render(**SAMPLING, sampling__volume__existingClaim="mine")
    assert CLAIM not in rendered
    (volume,) = (each for each in pod(rendered)["volumes"] if each["name"] == "history")
    assert volume["persistentVolumeClaim"] == {"claimName": "mine"}


def test_an_object_store_needs_no_volume(render: Render) -> None:
    rendered = render(**SAMPLING, sampling__url="s3://bucket/regent")
    assert CLAIM not in rendered
    assert arguments(rendered)[1] == "s3://bucket/regent"
    assert [volume["name"] for volume in pod(rendered)["volumes"]] == ["settings", "tmp"]


def test_it_has_no_right_in_kubernetes_and_is_not_taken_for_regent(render: Render) -> None:
    rendered = render(**SAMPLING)
    assert pod(rendered)["automountServiceAccountToken"] is False
    assert "serviceAccountName" not in pod(rendered)
    template = rendered[CRON_JOB]["spec"]["jobTemplate"]["spec"]["template"]
    selector = rendered["Deployment", "demo-regent"]["spec"]["selector"]["matchLabels"]
    assert not selector.items() <= template["metadata"]["labels"].items()


def test_it_reaches_zookeeper_and_brokers_and_no_api_server(render: Render) -> None:
    rendered = render(**SAMPLING, networkPolicy__enabled=True, networkPolicy__brokers__ports=[9092])
    policy = rendered["NetworkPolicy", "demo-regent-sample"]["spec"]
    template = rendered[CRON_JOB]["spec"]["jobTemplate"]["spec"]["template"]
    chosen = policy["podSelector"]["matchLabels"]
    assert chosen.items() <= template["metadata"]["labels"].items()
    ports = {port["port"] for rule in policy["egress"] for port in rule["ports"]}
    assert (policy["ingress"], ports) == ([], {53, 2181, 9092})


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"sampling__image__repository": ""}, r"sampling\.image\.repository is empty"),
        ({"sampling__retention": "a month"}, "retention"),
        ({"sampling__schedule": "every five minutes"}, "schedule"),
        ({"sampling__url": "bucket"}, "url"),
        ({"sampling__volume__accessModes": ["ReadOnlyMany"]}, "accessModes"),
    ],
)
def test_bad_values_are_refused(values: dict[str, Any], message: str) -> None:
    with pytest.raises(CommandError, match=message):
        manifests(**SAMPLING | values)


def test_a_long_name_of_a_release_fits() -> None:
    documents = yaml.safe_load_all(manifests(release="r" * 53, **SAMPLING))
    (name,) = (each["metadata"]["name"] for each in documents if each and each["kind"] == "CronJob")
    assert len(name) <= 52

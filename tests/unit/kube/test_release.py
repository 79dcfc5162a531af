"""What `regent release` makes of the Deployment that it is given."""

from __future__ import annotations

import pytest

from regent.kube.release import Deployment, label_selector
from regent.model.errors import ConfigurationError


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


def test_the_name_of_a_deployment() -> None:
    assert Deployment.parse("kafka/regent") == Deployment("kafka", "regent")

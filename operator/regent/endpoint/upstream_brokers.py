"""The brokers to which requests can be passed on, out of the controller's view."""

from __future__ import annotations

from collections.abc import Sequence

from regent.controller.view import ClusterView
from regent.protocol.api_versions import VersionRange
from regent.protocol.serving import UpstreamBroker


def upstream_brokers(view: ClusterView) -> Sequence[UpstreamBroker]:
    """The live brokers that have said which versions they understand; none of a standby."""
    return [
        UpstreamBroker(
            broker,
            {key: VersionRange(*versions) for key, versions in facts.api_versions.items()},
            is_stopping=broker.broker_id in view.shutting_down,
        )
        for facts in view.broker_facts
        if facts.api_versions and (broker := view.brokers.get(facts.broker_id)) is not None
    ]

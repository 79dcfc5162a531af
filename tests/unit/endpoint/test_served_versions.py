"""The versions that the endpoint serves of each API, against those of brokers of every release."""

from __future__ import annotations

import pytest

from regent.endpoint.dispatcher import HANDLERS, NODE_HANDLERS, served_apis
from regent.model.cluster import Broker
from regent.network.pass_through import PassThrough
from regent.network.upstream_settings import UpstreamSettings
from regent.protocol.kafka_api_versions import API_VERSIONS
from regent.protocol.served_apis import CONNECTION_APIS, table_of
from regent.protocol.serving import UpstreamBroker
from tests.support.raw_broker import nowhere, versions_of

ANSWERED = table_of((*CONNECTION_APIS, *served_apis((*HANDLERS, *NODE_HANDLERS))))
"""What the endpoint answers or reads if it passes requests on."""


def name_of(release: tuple[int, int]) -> str:
    return f"{release[0]}.{release[1]}"


@pytest.mark.parametrize("release", API_VERSIONS, ids=name_of)
def test_endpoint_serves_every_version_that_brokers_serve(release: tuple[int, int]) -> None:
    """A client that knows a version of brokers must not lose its connection at the endpoint."""
    broker = UpstreamBroker(Broker(1, 1, ()), versions_of(release))
    pass_through = PassThrough(
        UpstreamSettings(), brokers=lambda: [broker], depends_on_address=nowhere
    )
    listed = pass_through.listed(ANSWERED)
    missing = {
        key: (tuple(listed[key]), tuple(versions))
        for key, versions in broker.versions.items()
        if key in listed
        and not listed[key].lowest <= versions[0] <= versions[1] <= listed[key].highest
    }
    assert missing == {}


@pytest.mark.parametrize("key", sorted(ANSWERED))
def test_endpoint_reads_every_version_between_the_lowest_and_the_highest(key: int) -> None:
    """ApiVersions lists ranges: a gap in one would be a version that is listed and not read."""
    api = ANSWERED[key]
    assert sorted(api.requests) == list(range(api.lowest, api.highest + 1))
    assert api.responses.keys() == api.requests.keys()

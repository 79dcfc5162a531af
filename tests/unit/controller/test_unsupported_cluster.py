"""Brokers that need answers of the controller: such a cluster is left alone."""

from __future__ import annotations

import pytest

from regent.controller.cluster_loading import refuse_unsupported
from regent.model.cluster import Broker, EndPoint
from regent.model.errors import UnsupportedClusterError


def _broker(broker_id: int, registration_version: int) -> Broker:
    endpoint = EndPoint("PLAINTEXT", "PLAINTEXT", "localhost", 9092)
    return Broker(broker_id, 1, (endpoint,), registration_version=registration_version)


def test_brokers_below_2_7_are_supported() -> None:
    refuse_unsupported([_broker(1, 4), _broker(2, 2)])


def test_a_single_newer_broker_is_named_with_the_way_out() -> None:
    with pytest.raises(UnsupportedClusterError, match=r"brokers \[2\].*protocol\.version=2\.6"):
        refuse_unsupported([_broker(1, 4), _broker(2, 5)])

"""Variables that look like settings."""

from __future__ import annotations

import pytest

from regent.settings import Settings
from regent.settings.environment import unknown_variables


def test_a_misspelled_variable_is_found_and_the_right_name_is_given() -> None:
    assert unknown_variables(["REGENT_ZOOKEPER", "regent_mod", "REGENT_COLOUR", "PATH"]) == {
        "REGENT_COLOUR": None,
        "REGENT_ZOOKEPER": "REGENT_ZOOKEEPER",
        "regent_mod": "REGENT_MODE",
    }


def test_every_setting_and_the_other_commands_variables_are_known() -> None:
    settings = [f"REGENT_{field.upper()}" for field in Settings.model_fields]
    assert unknown_variables([*settings, "regent_zookeeper", "REGENT_SAMPLE_RETENTION"]) == {}


@pytest.mark.parametrize(
    "name",
    [
        "REGENT_SERVICE_HOST",
        "REGENT_SERVICE_PORT",
        "REGENT_SERVICE_PORT_HTTP_METRICS",
        "REGENT_PORT",
        "REGENT_PORT_8080_TCP",
        "REGENT_PORT_8080_TCP_PROTO",
        "REGENT_PORT_8080_TCP_PORT",
        "REGENT_PORT_8080_TCP_ADDR",
        "REGENT_KAFKA_PORT_9092_UDP_ADDR",
    ],
)
def test_what_kubernetes_sets_for_a_service_is_none(name: str) -> None:
    assert unknown_variables([name]) == {}

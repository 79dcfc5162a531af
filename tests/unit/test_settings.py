"""Settings: where they come from, what is refused, and that all are documented."""

from __future__ import annotations

from pathlib import Path

import pytest

from regent.app import channel_settings, controller_config, zookeeper_settings
from regent.model.errors import ConfigurationError
from regent.settings import CONTROLLER_ID_BASE, Settings, load_settings, render_markdown


def test_an_option_wins_over_the_environment_and_that_over_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "regent.yaml"
    file.write_text("zookeeper: file:1\nhttp-port: 1\nlog_level: debug\ncontroller_id: 5000\n")
    monkeypatch.setenv("REGENT_HTTP_PORT", "2")
    monkeypatch.setenv("REGENT_ZOOKEEPER", "environment:1")
    settings = load_settings({"zookeeper": "option:1"}, file=file)
    assert settings.zookeeper == "option:1"
    assert settings.http_port == 2
    assert settings.log_level == "debug"
    assert settings.controller_id == 5000


def test_namespaces_are_separated_by_commas_in_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("REGENT_NAMESPACES", "a, b,,c")
    assert load_settings({"zookeeper": "z:1"}).namespaces == ("a", "b", "c")


def test_the_controller_id_is_drawn_where_no_broker_has_one() -> None:
    one, other = (load_settings({"zookeeper": "z:1"}).controller_id for _ in range(2))
    assert CONTROLLER_ID_BASE <= one < CONTROLLER_ID_BASE + 100_000_000
    assert one != other


@pytest.mark.parametrize(
    ("options", "part"),
    [
        ({}, "--zookeeper HOST:PORT"),
        ({"zookeeper": "z:1", "http_port": 70000}, "http_port.*given: 70000"),
        ({"zookeeper": "z:1", "log_level": "loud"}, "log_level.*given: 'loud'"),
        ({"zookeeper": "z:1", "controller_id": 0}, "controller_id"),
        ({"zookeeper": "z:1", "controller_id": 1000}, "controller_id.*1001"),
        ({"zookeeper": "z:1", "missing_cluster": "ignore"}, "missing_cluster.*'create'"),
        ({"zookeeper": "z:1", "inter_broker_protocol": "new"}, "inter_broker_protocol"),
        ({"zookeeper": "z:1", "election_path": "regent"}, "election_path"),
    ],
)
def test_what_cannot_work_is_named_with_its_value(options: dict[str, object], part: str) -> None:
    with pytest.raises(ConfigurationError, match=f"(?s){part}"):
        load_settings(options)


@pytest.mark.parametrize(
    ("content", "part"),
    [
        ("- a\n- b\n", "mapping"),
        ("zookeeper: [unclosed", "cannot be read"),
        ("zookeper: z:1\n", "zookeper"),
    ],
)
def test_a_bad_settings_file_is_named(tmp_path: Path, content: str, part: str) -> None:
    file = tmp_path / "regent.yaml"
    file.write_text(content)
    with pytest.raises(ConfigurationError, match=part):
        load_settings({"zookeeper": "z:1"}, file=file)


def test_a_missing_settings_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="gone"):
        load_settings({}, file=tmp_path / "gone.yaml")


def test_every_setting_is_documented() -> None:
    document = render_markdown()
    for name, field in Settings.model_fields.items():
        assert field.description, name
        assert f"| `{name}` | `--{name.replace('_', '-')}`" in document


def test_a_protocol_version_that_no_broker_with_zookeeper_has_is_refused() -> None:
    settings = load_settings({"zookeeper": "z:1", "inter_broker_protocol": "9.9"})
    for part in (controller_config, channel_settings):
        with pytest.raises(ConfigurationError, match=r"9\.9: the last version .* is 3\.9"):
            part(settings)


def test_the_chroot_is_created_only_for_a_new_cluster() -> None:
    for missing_cluster, creates in (("wait", False), ("create", True)):
        settings = load_settings({"zookeeper": "z:1/kafka", "missing_cluster": missing_cluster})
        assert zookeeper_settings(settings).create_chroot is creates
        assert controller_config(settings).missing_cluster == missing_cluster

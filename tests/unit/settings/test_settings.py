"""Settings: where they come from, what is refused, and that all are documented."""

from __future__ import annotations

import importlib
import pkgutil
from pathlib import Path

import pytest

from regent import zk_data
from regent.app import controller_config
from regent.connections.client_settings import channel_settings, zookeeper_settings
from regent.model.active_regent import ServedResources
from regent.model.cluster import DRAWN_CONTROLLER_IDS
from regent.model.errors import ConfigurationError
from regent.servers.endpoint_settings import server_settings
from regent.settings.loading import load_settings
from regent.zk_data.broker_notes import DEPOSED, BrokerNotes
from regent.zk_data.stray_replicas import STRAY_REPLICAS
from regent.zk_data.throttles import THROTTLES


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


def test_a_message_repeats_a_long_value_in_part(tmp_path: Path) -> None:
    file = tmp_path / "regent.yaml"
    file.write_text(f"zookeeper: z:1\nhttp_port: {'x' * 5_000}\n")
    with pytest.raises(ConfigurationError, match=r"http_port: .*given: 'xxx") as caught:
        load_settings({}, file=file)
    assert len(str(caught.value)) < 1_000


@pytest.mark.parametrize("path", ["/brokers/ids", "/brokers/topics/x", "/controller", "/admin"])
def test_an_election_in_a_part_of_zookeeper_that_is_kafkas_is_refused(path: str) -> None:
    """A contender's node would be taken for a broker, or for a topic."""
    with pytest.raises(ConfigurationError, match=f"election_path: .*Kafka's.*{path}"):
        load_settings({"zookeeper": "zk", "election_path": path})
    settings = load_settings({"zookeeper": "zk", "election_path": "/regent/brokers"})
    assert settings.election_path == "/regent/brokers"


def notes_of_regent() -> list[str]:
    """All constants of ``regent.zk_data`` that are paths below ``/regent``."""
    paths: set[str] = set()
    for module in pkgutil.iter_modules(zk_data.__path__, "regent.zk_data."):
        for value in vars(importlib.import_module(module.name)).values():
            if isinstance(value, BrokerNotes):
                paths.update(value.parents)
            elif isinstance(value, str | tuple):
                paths.update([value] if isinstance(value, str) else value)
    return sorted(path for path in paths if str(path).startswith("/regent/"))


def test_all_notes_of_regent_are_found() -> None:
    assert {DEPOSED.parent, STRAY_REPLICAS, f"{THROTTLES}/topics"} <= set(notes_of_regent())


@pytest.mark.parametrize("notes", ["/regent", *notes_of_regent()])
def test_an_election_among_the_notes_of_regent_is_refused(notes: str) -> None:
    with pytest.raises(ConfigurationError, match=r"election_path: .*Regent keeps notes there"):
        load_settings({"zookeeper": "zk", "election_path": notes})


def test_namespaces_are_separated_by_commas_in_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("REGENT_NAMESPACES", "a, b,,c")
    assert load_settings({"zookeeper": "z:1"}).namespaces == ("a", "b", "c")


@pytest.mark.parametrize("name", ["", "Kafka", "kafka/..", "a" * 64, "kafka\n x"])
def test_what_is_no_namespace_is_refused(name: str) -> None:
    """An empty name would stand for all namespaces: `--namespace "$UNSET"`."""
    with pytest.raises(ConfigurationError, match="namespaces"):
        load_settings({"zookeeper": "z:1", "namespaces": ("kafka", name)})


def test_a_namespace_is_served_once() -> None:
    settings = load_settings({"zookeeper": "z:1", "namespaces": ("a", "b ", "a")})
    assert settings.namespaces == ("a", "b")


def test_blanks_around_a_setting_are_no_part_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """A Secret often ends in a newline; another election path would be another election."""
    monkeypatch.setenv("REGENT_ELECTION_PATH", "/regent/other\n")
    monkeypatch.setenv("REGENT_INTER_BROKER_LISTENER", " INTERNAL ")
    settings = load_settings({"zookeeper": "z:1"})
    assert settings.election_path == "/regent/other"
    assert settings.inter_broker_listener == "INTERNAL"


@pytest.mark.parametrize("path", ["/a/../b", "/a/.", "/a\0b"])
def test_an_election_path_that_zookeeper_refuses_is_refused_at_the_start(path: str) -> None:
    with pytest.raises(ConfigurationError, match="election_path"):
        load_settings({"zookeeper": "z:1", "election_path": path})


def test_the_controller_id_is_drawn_where_no_broker_has_one() -> None:
    one, other = (load_settings({"zookeeper": "z:1"}).controller_id for _ in range(2))
    assert one in DRAWN_CONTROLLER_IDS
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
        ({"zookeeper": "z:1", "spark_workspaces": "plans"}, "spark_workspaces.*'plans' is no URL"),
        (
            {"zookeeper": "z:1", "spark_workspaces": "s3a://b/a, s3a://b/../c"},
            "spark_workspaces.*'s3a://b/../c' is ambiguous",
        ),
    ],
)
def test_what_cannot_work_is_named_with_its_value(options: dict[str, object], part: str) -> None:
    with pytest.raises(ConfigurationError, match=f"(?s){part}"):
        load_settings(options)


def test_password_in_the_url_of_a_setting_is_refused_and_not_repeated() -> None:
    with pytest.raises(ConfigurationError, match="has a password: leave it out") as caught:
        load_settings({"zookeeper": "z:1", "spark_workspaces": "s3a://key:hunter2@bucket/plans"})
    assert "s3a://key:***@bucket/plans" in str(caught.value)
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    ("content", "part"),
    [
        ("- a\n- b\n", "mapping"),
        ("zookeeper: [unclosed", "cannot be read"),
        ("zookeper: z:1\n", r"zookeper: there is no such setting; did you mean zookeeper\?"),
        ("xyz: 1\n", "xyz: there is no such setting; docs/settings.md lists them all"),
        ("http-port: 1\nhttp_port: 2\n", "has http_port twice"),
        ("log_level: 2026-99-99\n", "cannot be read: month must be"),
        ("http_port: 1\nhttp_port: 2\n", "cannot be read: 'http_port' is there twice"),
        (f"a: {'[' * 1000}\n", "nested too deeply"),
        ('zookeeper_tls: true\nzookeeper_tls_ca_file: "a\\0b"\n', "control characters"),
    ],
)
def test_a_bad_settings_file_is_named(tmp_path: Path, content: str, part: str) -> None:
    file = tmp_path / "regent.yaml"
    file.write_text(content)
    with pytest.raises(ConfigurationError, match=part):
        load_settings({"zookeeper": "z:1"}, file=file)


@pytest.mark.parametrize(
    "line", ["http_port: yes", "endpoint_port: on", "planner_timeout_s: no", "log_level: off"]
)
def test_a_word_that_yaml_takes_for_true_or_false_is_no_number(tmp_path: Path, line: str) -> None:
    file = tmp_path / "regent.yaml"
    file.write_text(f"zookeeper: z:1\n{line}\n")
    with pytest.raises(ConfigurationError, match=f"{line.partition(':')[0]}: .*YAML takes yes"):
        load_settings({}, file=file)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"zookeeper_tls_ca_file": "ca.pem"}, "zookeeper_tls_ca_file: needs zookeeper_tls,"),
        (
            {"zookeeper_tls": True, "zookeeper_tls_key_file": "key.pem"},
            "zookeeper_tls_key_file: needs zookeeper_tls_certificate_file,",
        ),
        ({"broker_sasl_username": "u"}, "broker_sasl_username: needs broker_sasl_password_file,"),
        ({"zookeeper_sasl_password_file": "p"}, "password_file: needs zookeeper_sasl_username,"),
        ({"zookeeper_set_acl": True}, "zookeeper_set_acl: needs zookeeper_sasl_username or "),
    ],
)
def test_a_setting_without_the_one_it_needs_is_refused(
    options: dict[str, object], message: str
) -> None:
    """It would have no effect, and a connection no protection."""
    with pytest.raises(ConfigurationError, match=f"(?s)invalid settings:.*{message}"):
        load_settings({"zookeeper": "z:1", **options})


def test_a_setting_may_need_one_that_comes_from_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "regent.yaml"
    file.write_text("zookeeper: z:1\nzookeeper_tls: true\n")
    monkeypatch.setenv("REGENT_ZOOKEEPER_TLS_CA_FILE", "ca.pem")
    assert load_settings({}, file=file).zookeeper_tls_ca_file == Path("ca.pem")


def test_a_missing_settings_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="gone"):
        load_settings({}, file=tmp_path / "gone.yaml")


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


@pytest.mark.parametrize(
    ("setting", "field", "default", "other"),
    [
        ("delegation_token_expiry_check_interval_ms", None, 3_600_000, 5_000),
        ("auto_leader_rebalance_enable", None, True, False),
        ("leader_imbalance_check_interval_seconds", "leader_imbalance_check_interval_s", 300, 7),
        ("leader_imbalance_per_broker_percentage", None, 10, 0),
    ],
)
def test_setting_reaches_the_controller(
    setting: str, field: str | None, default: object, other: object
) -> None:
    for given, expected in (({}, default), ({setting: other}, other)):
        config = controller_config(load_settings({"zookeeper": "z:1", **given}))
        assert getattr(config, field or setting) == expected


def test_others_are_told_which_resources_are_served() -> None:
    options = {
        "zookeeper": "z:1",
        "lease_namespace": "kafka",
        "lease_name": "east",
        "namespaces": ["shop"],
        "cluster_name": "east",
    }
    served = ServedResources("kafka/east", ("shop",), "east")
    assert controller_config(load_settings(options)).resources == served
    without = {"zookeeper": "z:1", "without_kubernetes": True}
    assert controller_config(load_settings(without)).resources == ServedResources(None)


def test_brokers_and_clients_are_not_served_by_default() -> None:
    assert server_settings(load_settings({"zookeeper": "z:1"})) is None


def test_the_settings_of_the_endpoint_are_those_of_its_server(tmp_path: Path) -> None:
    options = {
        "zookeeper": "z:1",
        "endpoint_host": "0.0.0.0",
        "endpoint_port": 0,
        "endpoint_advertised_host": "regent.example.org",
        "endpoint_tls": True,
        "endpoint_tls_certificate_file": tmp_path / "certificate.pem",
        "endpoint_tls_key_file": tmp_path / "key.pem",
        "endpoint_tls_client_auth": "required",
        "endpoint_sasl_mechanisms": "SCRAM-SHA-256, SCRAM-SHA-512",
        "endpoint_super_users": "User:kafka; User:CN=a,O=b",
        "endpoint_max_connections_per_address": 7,
        "endpoint_max_request_rate": 8,
        "endpoint_idle_timeout_s": 9,
    }
    settings = load_settings(options)
    assert settings.endpoint_super_users == ("User:kafka", "User:CN=a,O=b")
    assert settings.endpoint_trusted_as_brokers == "registered-brokers"
    server = server_settings(settings)
    assert server is not None
    assert (server.host, server.port, server.security_protocol) == ("0.0.0.0", 0, "SASL_SSL")
    assert server.sasl_mechanisms == ("SCRAM-SHA-256", "SCRAM-SHA-512")
    assert server.tls is not None
    assert (server.tls.certificate, server.tls.client_auth) == (
        tmp_path / "certificate.pem",
        "required",
    )
    assert server.limits.connections_per_address == 7
    assert (server.limits.request_rate, server.limits.idle_s) == (8, 9)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"endpoint_advertised_host": "h"}, "endpoint_advertised_host: needs endpoint_port,"),
        ({"endpoint_tls_client_ca_file": "ca"}, "endpoint_tls_client_ca_file: needs endpoint_tls,"),
        ({"endpoint_sasl_plain_users_file": "u"}, "needs endpoint_sasl_mechanisms,"),
        ({"endpoint_sasl_mechanisms": "GSSAPI"}, "endpoint_sasl_mechanisms.*SCRAM-SHA-512"),
        ({"endpoint_super_users": "kafka"}, "'kafka' is no principal such as User:kafka"),
        ({"endpoint_trusted_as_brokers": "all"}, "registered-brokers"),
        ({"endpoint_port": 0, "endpoint_tls": True}, "endpoint_tls needs"),
        ({"endpoint_port": 0, "endpoint_sasl_mechanisms": "PLAIN"}, "endpoint_sasl_plain_users"),
    ],
)
def test_settings_of_the_endpoint_that_cannot_be_are_named(
    options: dict[str, object], message: str
) -> None:
    with pytest.raises(ConfigurationError, match=f"(?s){message}"):
        server_settings(load_settings({"zookeeper": "z:1", **options}))


@pytest.mark.parametrize("host", ["[::1]", "a b", "http://regent", "regent:9092", "a,b"])
@pytest.mark.parametrize("setting", ["endpoint_advertised_host", "replica_advertised_host"])
def test_an_advertised_host_has_the_form_of_one(setting: str, host: str) -> None:
    with pytest.raises(ConfigurationError, match=f"{setting}: .* neither the name"):
        load_settings({"zookeeper": "z:1", "endpoint_port": 0, setting: host})


def test_advertised_hosts_are_names_or_addresses() -> None:
    for host in ("regent-0.kafka_1.svc", "2001:db8::1", "fe80::1%eth0", "10.0.0.1"):
        settings = load_settings(
            {"zookeeper": "z:1", "endpoint_port": 0, "endpoint_advertised_host": host}
        )
        assert settings.endpoint_advertised_host == host

"""Every setting of ``regent run``: one place for names, defaults, bounds and documentation.

Command-line options, environment variables, the keys of the settings file and ``docs/settings.md``
are all derived from :class:`Settings`. An option wins over the environment, the environment over
the file, the file over the default.
"""

from __future__ import annotations

import random
import re
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import Field, field_validator
from pydantic_settings import (
    BaseSettings,
    NoDecode,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
)

from regent.model.cluster import DRAWN_CONTROLLER_IDS

ENVIRONMENT_PREFIX = "REGENT_"
SaslMechanism = Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]


def _random_controller_id() -> int:
    return random.choice(DRAWN_CONTROLLER_IDS)  # noqa: S311 - no secret


_ROOTS_OF_KAFKA: Final = frozenset(
    {
        *("admin", "brokers", "cluster", "config", "consumers", "controller", "controller_epoch"),
        *("delegation_token", "feature", "isr_change_notification", "latest_producer_id_block"),
        *("kafka-acl", "kafka-acl-changes", "kafka-acl-extended", "kafka-acl-extended-changes"),
        *("log_dir_event_notification", "migration", "zookeeper"),
    }
)
"""Where a contender's node would be taken for a broker, a topic or a change. ``/zookeeper`` is the
servers' own."""


class Settings(BaseSettings):
    """Settings of one Regent process."""

    model_config = SettingsConfigDict(
        env_prefix=ENVIRONMENT_PREFIX, extra="forbid", frozen=True, validate_default=False
    )

    zookeeper: str = Field(
        default="",
        description="ZooKeeper servers of the Kafka cluster, with its chroot if it has one: "
        "`host:port,host:port/chroot`, as in the brokers' `zookeeper.connect`.",
    )
    zookeeper_session_timeout_ms: int = Field(
        default=18_000,
        ge=1_000,
        le=600_000,
        description="Session timeout asked of ZooKeeper (which may bound it), in milliseconds. A "
        "controller that is cut off stops sending after two thirds of it; a successor can be "
        "elected once it is over.",
    )
    zookeeper_connect_timeout_ms: int = Field(
        default=4_000,
        ge=100,
        le=60_000,
        description="How long one connection attempt to one ZooKeeper server may take, in "
        "milliseconds.",
    )
    zookeeper_jute_max_buffer: int = Field(
        default=1_048_575,
        ge=65_536,
        le=2**31 - 1,
        description="The ZooKeeper servers' `jute.maxbuffer`, in bytes: they end the session of a "
        "client that sends a larger request, so such a request is refused instead. Raise it only "
        "together with that of all servers and brokers.",
    )
    zookeeper_set_acl: bool = Field(
        default=False,
        description="Protect the znodes that are created, as brokers with `zookeeper.set.acl=true` "
        "do: all rights for the creator, reading for everybody.",
    )
    zookeeper_tls: bool = Field(default=False, description="Connect to ZooKeeper with TLS.")
    zookeeper_tls_ca_file: Path | None = Field(
        default=None,
        description="Certificate authorities (PEM) to trust; by default those of the system.",
    )
    zookeeper_tls_certificate_file: Path | None = Field(
        default=None, description="Client certificate (PEM), for servers that ask for one."
    )
    zookeeper_tls_key_file: Path | None = Field(
        default=None, description="Private key (PEM) of the client certificate."
    )
    zookeeper_sasl_username: str | None = Field(
        default=None, description="Authenticate to ZooKeeper by SASL DIGEST-MD5 as this user."
    )
    zookeeper_sasl_password_file: Path | None = Field(
        default=None, description="File with the user's password."
    )
    missing_cluster: Literal["wait", "create"] = Field(
        default="wait",
        description="What to do where ZooKeeper has no Kafka cluster (no `/cluster/id` and no "
        "broker): `wait` until there is one and write nothing before, or `create` the chroot and "
        "be the controller of a new cluster whose brokers have yet to start.",
    )
    controller_id: int = Field(
        default_factory=_random_controller_id,
        ge=1_001,
        le=2_000_000_000,
        description="Id under which `/controller` is held. It must differ from the id of every "
        "broker, present, past and future, and between the replicas of Regent: an id that a broker "
        "or a topic names is refused. By default a number from 1,000,000,000 to 1,099,999,999 is "
        "drawn at the start.",
    )
    election_path: str = Field(
        default="/regent/election",
        pattern=r"^(/[^/]+)+$",
        description="Where the replicas of Regent elect one among themselves in ZooKeeper, below "
        "the chroot. Not in a part of it that is Kafka's. All Regents of a Kafka cluster need the "
        "same: one with another path does not become the controller while the other one is.",
    )
    lease_name: str = Field(
        default="regent",
        pattern=r"^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$",
        description="Name of the Kubernetes Lease by which the replicas agree on who looks after "
        "custom resources while there is no controller. Each Regent in a namespace needs one of "
        "its own.",
    )
    lease_namespace: str | None = Field(
        default=None,
        description="Namespace of the Lease. By default that of the pod; outside a pod `default`.",
    )
    status_unknown_after_s: float = Field(
        default=120.0,
        ge=10.0,
        le=86_400.0,
        description="When the conditions of custom resources turn Unknown after the Kafka cluster "
        "has lost its controller: no ZooKeeper answers, or Regent refuses the cluster. In seconds.",
    )
    unclean_leader_election_enable: bool = Field(
        default=False,
        description="The brokers' static `unclean.leader.election.enable`. The dynamic default of "
        "the cluster and a topic's own configuration win over it.",
    )
    auto_leader_rebalance_enable: bool = Field(
        default=True,
        description="Move leaders back to their preferred replicas when too many have left them: "
        "what `auto.leader.rebalance.enable` is for a broker's controller.",
    )
    leader_imbalance_check_interval_seconds: int = Field(
        default=300,
        ge=1,
        le=2_000_000,
        description="How often that is checked, in seconds "
        "(`leader.imbalance.check.interval.seconds`); at first 5 seconds after the election.",
    )
    leader_imbalance_per_broker_percentage: int = Field(
        default=10,
        ge=0,
        le=100,
        description="Leaders are moved to a broker when others lead more than this percentage of "
        "the partitions whose preferred replica it hosts (`leader.imbalance.per.broker.percentage`)"
        ".",
    )
    delegation_token_expiry_check_interval_ms: int = Field(
        default=3_600_000,
        ge=1_000,
        le=2**31 - 1,
        description="How often delegation tokens that have expired are removed, in milliseconds "
        "(`delegation.token.expiry.check.interval.ms`).",
    )
    delete_topic_enable: bool = Field(
        default=True, description="The brokers' `delete.topic.enable`."
    )
    deletion_waits_for_brokers: bool = Field(
        default=False,
        description="Whether a topic is deleted only when every broker that hosts a replica of it "
        "is up, as Kafka's own controller does. Otherwise such replicas are noted in ZooKeeper and "
        "deleted when their broker is back.",
    )
    default_replication_factor: int = Field(
        default=1,
        ge=1,
        le=32_767,
        description="Replicas of a topic that names neither a number nor an assignment: the "
        "brokers' `default.replication.factor`.",
    )
    inter_broker_listener: str | None = Field(
        default=None,
        description="Listener of the brokers that control requests are sent to: their "
        "`control.plane.listener.name` if set, else their `inter.broker.listener.name`. By default "
        "the brokers are asked. From `inter.broker.protocol.version` 2.7 on it is also the one by "
        "which brokers ask the controller: with it, only this one has to be served, by default all "
        "of the brokers' listeners.",
    )
    inter_broker_protocol: str | None = Field(
        default=None,
        pattern=r"^\d+\.\d+(-IV\d+)?$",
        description="Assume this `inter.broker.protocol.version`, for instance `2.6`, of brokers "
        "that do not report theirs (for want of `DescribeConfigs`, or because they are down). It "
        "cannot overrule what brokers report: while they report another one, Regent leaves the "
        "cluster alone.",
    )
    broker_request_timeout_ms: int = Field(
        default=30_000,
        ge=1_000,
        le=600_000,
        description="How long to wait for a broker's answer before the request is sent again on a "
        "new connection, in milliseconds. Requests of more than 50,000 partitions (the first "
        "LeaderAndIsr after a broker's start may be such) have proportionally longer.",
    )
    broker_tls: bool = Field(
        default=False, description="Use listeners with TLS (`SSL` or `SASL_SSL`)."
    )
    broker_tls_ca_file: Path | None = Field(
        default=None,
        description="Certificate authorities (PEM) to trust; by default those of the system.",
    )
    broker_tls_certificate_file: Path | None = Field(
        default=None, description="Client certificate chain (PEM), for brokers that ask for one."
    )
    broker_tls_key_file: Path | None = Field(
        default=None, description="Private key (PEM) of the client certificate."
    )
    broker_sasl_mechanism: SaslMechanism = Field(
        default="SCRAM-SHA-512", description="Mechanism for listeners with SASL."
    )
    broker_sasl_username: str | None = Field(
        default=None,
        description="Use listeners with SASL as this user, who needs ClusterAction on the cluster.",
    )
    broker_sasl_password_file: Path | None = Field(
        default=None, description="File with the user's password."
    )
    endpoint_host: str = Field(
        default="127.0.0.1",
        description="Address on which brokers and clients are served with Kafka's protocol. In a "
        "pod: `0.0.0.0`.",
    )
    endpoint_port: int | None = Field(
        default=None,
        ge=0,
        le=65_535,
        description="Its port; 0 takes any free one. By default nobody is served.",
    )
    endpoint_advertised_host: str | None = Field(
        default=None,
        description="Name or address under which brokers and clients reach it. By default "
        "`endpoint_host`, and if that stands for all addresses of the machine, the machine's full "
        "name. In a pod its address: nobody else can resolve its name (the chart sets it).",
    )
    endpoint_advertised_port: int | None = Field(
        default=None, ge=1, le=65_535, description="The same for the port."
    )
    endpoint_announced_listeners: Annotated[tuple[str, ...], NoDecode] = Field(
        default=(),
        description="Names of the brokers' listeners, separated by commas, under which the "
        "controller appears beside the brokers, at the advertised address. By default all whose "
        "security protocol is served. Clients of other listeners do not see the controller: they "
        "produce and consume as ever, but what they can ask only a controller (creating topics, "
        "for instance) ends with a timeout. The listener by which brokers reach the controller has "
        "to be among them.",
    )
    endpoint_tls: bool = Field(default=False, description="Serve with TLS (`SSL`, `SASL_SSL`).")
    endpoint_tls_certificate_file: Path | None = Field(
        default=None,
        description="The endpoint's certificate with its chain (PEM). It and the other files of "
        "TLS are read again when they have changed.",
    )
    endpoint_tls_key_file: Path | None = Field(
        default=None, description="Private key (PEM) of that certificate, without a password."
    )
    endpoint_tls_client_ca_file: Path | None = Field(
        default=None,
        description="Certificate authorities (PEM) of clients; by default those of the system.",
    )
    endpoint_tls_client_auth: Literal["none", "requested", "required"] = Field(
        default="none",
        description="Whether clients show a certificate (the brokers' `ssl.client.auth`). Its "
        "subject is their principal, such as `User:CN=broker-1,O=Example`, unless SASL is used.",
    )
    endpoint_sasl_mechanisms: Annotated[tuple[SaslMechanism, ...], NoDecode] = Field(
        default=(),
        description="Mechanisms of SASL of which clients have to use one, separated by commas: "
        "`PLAIN`, `SCRAM-SHA-256`, `SCRAM-SHA-512`; none for no SASL. SCRAM users are those of the "
        "Kafka cluster; ZooKeeper has to let Regent read `/config/users`.",
    )
    endpoint_sasl_plain_users_file: Path | None = Field(
        default=None,
        description="Users of the mechanism PLAIN: a YAML file with the users as keys and their "
        "passwords as values. It is read again when it has changed.",
    )
    endpoint_listener: str | None = Field(
        default=None,
        min_length=1,
        description="Name of the brokers' listener whose clients are served here, and to which "
        "their requests are passed on: brokers answer with addresses of that listener. By default "
        "the only one of `endpoint_announced_listeners` that has the security protocol of the "
        "endpoint; with several of them nothing is passed on.",
    )
    endpoint_pass_through: bool = Field(
        default=True,
        description="Pass requests that any broker can answer (metadata, coordinators, ACLs) on to "
        "one, with the client's own identity. Clients that see Regent need it.",
    )
    endpoint_max_upstream_connections: int = Field(
        default=500,
        ge=1,
        le=100_000,
        description="Connections to brokers for that, at most one for each connection of a client. "
        "One more closes another, which costs its client nothing unless it waits for an answer.",
    )
    endpoint_trusted_as_brokers: Literal["registered-brokers", "everybody", "nobody"] = Field(
        default="registered-brokers",
        description="Who may ask what only brokers ask (ISR changes, controlled shutdown, producer "
        "ids) without having authenticated: whoever connects from the address of a broker that is "
        "registered in ZooKeeper, everybody, or nobody. A broker behind NAT or a proxy comes from "
        "another address.",
    )
    endpoint_super_users: Annotated[tuple[str, ...], NoDecode] = Field(
        default=(),
        description="Principals that may ask everything, separated by semicolons as in the "
        "brokers' `super.users`: those of the brokers, for instance "
        "`User:kafka;User:CN=broker-1,O=Example`.",
    )
    endpoint_authorizer: Literal["detect", "kafka-acls", "none"] = Field(
        default="detect",
        description="Who may create topics, move partitions and so on: whom Kafka's access control "
        "lists in ZooKeeper allow to (`kafka-acls`), or everybody (`none`). `detect`: as the "
        "brokers' `authorizer.class.name` says; with one that is not Kafka's, super users only.",
    )
    endpoint_allow_everyone_if_no_acl_found: bool = Field(
        default=False,
        description="The brokers' `allow.everyone.if.no.acl.found`: whether everybody may do "
        "everything with what has no entry in the lists.",
    )
    endpoint_max_connections: int = Field(
        default=5_000,
        ge=10,
        le=1_000_000,
        description="Open connections of brokers and clients. One more closes another: of the "
        "address that has most of them, the one that is idle longest. The process keeps 256 of its "
        "open files for other purposes.",
    )
    endpoint_max_connections_per_address: int = Field(
        default=500,
        ge=1,
        le=1_000_000,
        description="The same for one address (with IPv6 for a network of 64 bits); further ones "
        "are closed. Clients behind NAT share an address.",
    )
    endpoint_max_connection_rate: float = Field(
        default=100.0,
        gt=0,
        le=1_000_000,
        description="New connections of one address in a second; twice as many at once.",
    )
    endpoint_max_request_rate: float = Field(
        default=2_000.0,
        gt=0,
        le=1_000_000,
        description="Requests of one address in a second, twice as many at once; a request counts "
        "once more for each kilobyte. Further ones wait.",
    )
    endpoint_max_requests_in_progress: int = Field(
        default=1_000,
        ge=1,
        le=100_000,
        description="Requests that are processed at the same time; further ones wait.",
    )
    endpoint_max_request_bytes: int = Field(
        default=8 * 1024 * 1024,
        ge=65_536,
        le=100 * 1024 * 1024,
        description="Size of a request; a connection with a larger one is closed. An ISR change "
        "of 50,000 partitions in one request may have 5 MB.",
    )
    endpoint_max_buffered_bytes: int = Field(
        default=64 * 1024 * 1024,
        ge=1024 * 1024,
        le=2**40,
        description="Size of all requests that have not been processed yet. When there is more, "
        "the connection that holds most is closed.",
    )
    endpoint_idle_timeout_s: float = Field(
        default=600.0,
        ge=1.0,
        le=86_400.0,
        description="When a connection without requests is closed, in seconds "
        "(`connections.max.idle.ms`).",
    )
    endpoint_request_timeout_s: float = Field(
        default=30.0,
        ge=1.0,
        le=3_600.0,
        description="How long a client may take to send a request from its first byte to its "
        "last, to take an answer, and to authenticate, in seconds each.",
    )
    without_kubernetes: bool = Field(
        default=False,
        description="Be the controller alone, without custom resources: no API server is needed.",
    )
    namespaces: Annotated[tuple[str, ...], NoDecode] = Field(
        default=(),
        description="Namespaces whose custom resources are served; none means all. In the "
        "environment separated by commas.",
    )
    http_host: str = Field(
        default="127.0.0.1",
        description="Address of the HTTP endpoint (`/metrics`, `/healthz`, `/readyz`, `/status`, "
        "`/why`). In a pod: `0.0.0.0`.",
    )
    http_port: int = Field(
        default=8080, ge=0, le=65_535, description="Its port; 0 takes any free one."
    )
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        default="info", description="Least severity that is logged."
    )
    log_format: Literal["json", "text"] = Field(
        default="json", description="One JSON object a line, or text for people."
    )
    state_change_log: bool = Field(
        default=False,
        description="Log every transition of every partition and replica, as Kafka's "
        "`state-change.log` does. Costs time in large failovers.",
    )

    @field_validator("election_path")
    @classmethod
    def _leave_to_kafka(cls, path: str) -> str:
        if path.split("/")[1] in _ROOTS_OF_KAFKA:
            raise ValueError(
                "this part of ZooKeeper is Kafka's, whose brokers read all nodes there"
            )
        return path

    @field_validator(
        "namespaces", "endpoint_sasl_mechanisms", "endpoint_announced_listeners", mode="before"
    )
    @classmethod
    def _split(cls, value: Any) -> Any:
        return _parts(value, ",")

    @field_validator("endpoint_super_users", mode="before")
    @classmethod
    def _split_principals(cls, value: Any) -> Any:
        """Names of certificates' subjects have commas."""
        return _parts(value, ";")

    @field_validator("endpoint_super_users")
    @classmethod
    def _check_principals(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        wrong = [each for each in value if not re.fullmatch(r"[^:]+:.+", each)]
        if wrong:
            raise ValueError(f"{wrong[0]!r} is no principal such as User:kafka")
        return value

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        return init_settings, env_settings


def _parts(value: Any, separator: str) -> Any:
    if isinstance(value, str):
        return tuple(part.strip() for part in value.split(separator) if part.strip())
    return value


def option_of(name: str) -> str:
    """The command line's option for a setting; one that is a list is given once for each entry."""
    return "--namespace" if name == "namespaces" else f"--{name.replace('_', '-')}"


def render_markdown() -> str:
    """``docs/settings.md``: every setting with its option, variable, default and meaning."""
    lines = [
        "# Settings of `regent run`",
        "",
        "<!-- Generated by `regent settings`: change operator/regent/settings.py instead. -->",
        "",
        "An option wins over the environment, the environment over the file named by `--config` "
        "(YAML, keys as in the first column), the file over the default.",
        "",
        "| key | option | environment | default | meaning |",
        "|---|---|---|---|---|",
    ]
    for name, field in Settings.model_fields.items():
        default = "drawn at the start" if field.default_factory is not None else field.default
        shown = {None: "none", "": "required", (): "none"}.get(default, default)
        if isinstance(shown, bool):
            shown = str(shown).lower()
        lines.append(
            f"| `{name}` | `{option_of(name)}` | `{ENVIRONMENT_PREFIX}{name.upper()}` "
            f"| {shown} | {field.description} |"
        )
    return "\n".join(lines) + "\n"

"""Every setting of ``regent run``: one place for names, defaults, bounds and documentation.

Command-line options, environment variables, the keys of the settings file and ``docs/settings.md``
are all derived from :class:`Settings`. An option wins over the environment, the environment over
the file, the file over the default.
"""

from __future__ import annotations

import random
import re
from pathlib import Path
from typing import Annotated, Any, Final, Literal, get_args

from pydantic import Field, ValidationInfo, field_validator
from pydantic_settings import (
    BaseSettings,
    NoDecode,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
)

from regent.model.cluster import DRAWN_CONTROLLER_IDS
from regent.model.topic_name_rules import TopicNameRules
from regent.settings.endpoint import EndpointOptions, SaslMechanism
from regent.settings.evictions import EvictionOptions
from regent.settings.lists import TopicNameRuleText, parts
from regent.settings.namespaces import namespace_name
from regent.settings.replicas import ReplicaOptions
from regent.settings.spark import SparkOptions

ENVIRONMENT_PREFIX = "REGENT_"


def _random_controller_id() -> int:
    return random.choice(DRAWN_CONTROLLER_IDS)  # noqa: S311 - no secret


_CONTROL_CHARACTERS: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")

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


_NOTES_OF_REGENT: Final = (
    *("deposed_controllers", "overtaken_answers", "shutting_down_brokers", "stray_replicas"),
    *("throttles", "topic_ids"),
)
"""Below ``/regent``: where a contender's node would be taken for a note, and removed."""

_TAKEN_PATHS: Final = "|".join(
    (
        rf"^/({'|'.join(sorted(_ROOTS_OF_KAFKA))})(/|$)",
        rf"^/regent(/({'|'.join(_NOTES_OF_REGENT)})(/|$)|$)",
        r"/\.\.?(/|$)",
    )
)
"""The same, for a JSON schema."""


class Settings(EndpointOptions, ReplicaOptions, EvictionOptions, SparkOptions, BaseSettings):
    """Settings of one Regent process."""

    model_config = SettingsConfigDict(
        env_prefix=ENVIRONMENT_PREFIX,
        extra="forbid",
        frozen=True,
        validate_default=False,
        str_strip_whitespace=True,  # a Secret often ends in a newline
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
        "do: all rights for the creator, reading for everybody (not of users, brokers' "
        "configurations and delegation tokens).",
    )
    zookeeper_tls: bool = Field(
        default=False,
        description="Connect to ZooKeeper with TLS. Its files are read for each connection.",
    )
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
        default=None, description="File with the user's password. It is read at the start."
    )
    missing_cluster: Literal["wait", "create"] = Field(
        default="wait",
        description="What to do where ZooKeeper has no Kafka cluster (no `/cluster/id` and no "
        "broker): `wait` until there is one and write nothing before, or `create` the chroot and "
        "be the controller of a new cluster whose brokers have yet to start.",
    )
    mode: Literal["controller", "client"] = Field(
        default="controller",
        description="`controller`: be the Kafka controller. `client`: leave that to the brokers, "
        "and serve custom resources through ZooKeeper and the broker that is the controller. All "
        "replicas of a Regent need the same. See docs/client-mode.md.",
    )
    controller_id: int = Field(
        default_factory=_random_controller_id,
        ge=1_001,
        le=2_000_000_000,
        description="Id under which `/controller` is held. It must differ from the id of every "
        "broker, present, past and future, and between the replicas of Regent: an id that a "
        "broker, a topic or a live replica has is refused. By default a number from 1,000,000,000 "
        "to 1,099,999,999 is drawn at the start.",
    )
    election_path: str = Field(
        default="/regent/election",
        pattern=r"^(/[^/]+)+$",
        json_schema_extra={"not": {"pattern": _TAKEN_PATHS}},
        description="Where the replicas of Regent elect one among themselves in ZooKeeper, below "
        "the chroot. Not in a part of it that is Kafka's, nor among Regent's notes. All Regents of "
        "a Kafka cluster need the same: one with another path does not become the controller while "
        "the other one is.",
    )
    warm_standby: bool = Field(
        default=False,
        description="Keep a copy of the cluster's state in memory, in every replica, and have "
        "ZooKeeper's watches keep it up to date: whoever takes over loads it instead of reading "
        "everything. Needs ZooKeeper 3.6 or later. And have the replicas know each other, so that "
        "one that is dead or frozen is followed at once. See docs/warm-standby.md.",
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
        default=True,
        description="The brokers' `delete.topic.enable`. With true, no topic is deleted while a "
        "live broker reports false.",
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
        "of the brokers' listeners. A broker that lacks it counts as without this setting.",
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
        default=False,
        description="Use listeners with TLS (`SSL` or `SASL_SSL`). Its files are read again when "
        "they have changed.",
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
        description="Use listeners with SASL as this user, who needs ClusterAction, Describe and "
        "DescribeConfigs on the cluster.",
    )
    broker_sasl_password_file: Path | None = Field(
        default=None, description="File with the user's password. It is read at the start."
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
    cluster_name: str | None = Field(
        default=None,
        max_length=63,
        pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$",
        description="Name of the Kafka cluster in Kubernetes: custom resources whose "
        "`spec.clusterRef` has it are served. Without it, those without `clusterRef` are. Every "
        "Kafka cluster that is served in the same namespaces needs another one.",
    )
    default_cluster: bool = Field(
        default=False,
        description="With `cluster_name`: also serve custom resources without `clusterRef`. Only "
        "one of several Regents may.",
    )
    topic_name_rules: Annotated[tuple[TopicNameRuleText, ...], NoDecode] = Field(
        default=(),
        description="Which namespaces may declare which topics, as `NAMESPACES=TOPICS`: "
        "`team-a=team-a.*`, `*={namespace}.*`, `platform=*`. `*` stands for any characters, "
        "`{namespace}` for the namespace. Without rules every namespace may declare every topic; "
        "with rules, only what one of them allows. As option and in the environment separated by "
        "commas.",
    )
    planner_timeout_s: float = Field(
        default=900.0,
        ge=1.0,
        le=86_400.0,
        description="How long the planner of `spec.rebalance` may take for a plan, in seconds; "
        "then it is ended.",
    )
    planner_memory_bytes: int = Field(
        default=512 * 1024**2,
        ge=256 * 1024**2,
        le=2**50,
        description="How much memory the planner of `spec.rebalance` may take. It is a process in "
        "the same container, whose limit has to have room for it beside Regent.",
    )
    planner_history: str | None = Field(
        default=None,
        pattern=r"^(/|[a-z][a-z0-9+.-]*:/)\S*$",
        description="Where the [history](history.md) of the cluster is, which `regent sample` "
        "keeps, for `spec.rebalance.history`: the path of a folder, for plans that are made beside "
        "Regent, or a URL of Hadoop's file systems, such as `s3a://bucket/regent`, for those that "
        "are made on Spark.",
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
        if any(part in (".", "..") for part in path.split("/")):
            raise ValueError("is not a path in ZooKeeper, which has no relative ones")
        if path.split("/")[1] in _ROOTS_OF_KAFKA:
            raise ValueError(
                "this part of ZooKeeper is Kafka's, whose brokers read all nodes there"
            )
        if path == "/regent" or path.split("/")[1:3] in [["regent", n] for n in _NOTES_OF_REGENT]:
            raise ValueError("Regent keeps notes there; choose another one below /regent")
        return path

    @field_validator("*", mode="before")
    @classmethod
    def _refuse_truth_as_a_number(cls, value: Any, info: ValidationInfo) -> Any:
        if isinstance(value, bool) and info.field_name is not None:
            wanted = cls.model_fields[info.field_name].annotation
            if bool not in (wanted, *get_args(wanted)):
                raise ValueError("YAML takes yes, no, on and off for true and false")
        return value

    @field_validator("*", mode="after")
    @classmethod
    def _refuse_control_characters(cls, value: Any) -> Any:
        for text in value if isinstance(value, tuple) else (value,):
            if isinstance(text, str | Path) and _CONTROL_CHARACTERS.search(str(text)):
                raise ValueError("must not have control characters")
        return value

    @field_validator("namespaces", "topic_name_rules", mode="before")
    @classmethod
    def _split(cls, value: Any) -> Any:
        return parts(value, ",")

    @field_validator("topic_name_rules")
    @classmethod
    def _can_be_read(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        TopicNameRules.parse(value)
        return value

    @field_validator("namespaces")
    @classmethod
    def _check_namespaces(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(dict.fromkeys(map(namespace_name, value)))

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


def option_of(name: str) -> str:
    """The command line's option for a setting; one that is a list is given once for each entry."""
    return "--namespace" if name == "namespaces" else f"--{name.replace('_', '-')}"

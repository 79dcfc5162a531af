"""How the replicas of a Regent know each other: a part of the settings of the process."""

from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel, Field

from regent.settings.hosts import HostOfOthers


class ReplicaOptions(BaseModel):
    """Where a replica answers heartbeats, and when another one is suspected. All of it is for
    ``warm_standby``."""

    replica_host: str | None = Field(
        default=None,
        description="With `warm_standby`: address on which heartbeats of other replicas are "
        "answered. By default all addresses of the machine.",
    )
    replica_port: int = Field(
        default=0,
        ge=0,
        le=65_535,
        description="Its port; 0 takes any free one. Other replicas find it in ZooKeeper.",
    )
    replica_advertised_host: HostOfOthers | None = Field(
        default=None,
        description="Name or address under which other replicas reach it. By default the address "
        "from which this machine reaches ZooKeeper (in a pod the pod's).",
    )
    replica_tls: bool = Field(
        default=False,
        description="TLS between replicas: both sides show a certificate. Its files are read again "
        "when they have changed.",
    )
    replica_tls_ca_file: Path | None = Field(
        default=None,
        description="Certificate authorities (PEM) of replicas. Names in certificates are not "
        "compared: whoever has a certificate of these authorities is taken for a replica.",
    )
    replica_tls_certificate_file: Path | None = Field(
        default=None,
        description="Certificate chain (PEM) of this replica, for a server and a client.",
    )
    replica_tls_key_file: Path | None = Field(
        default=None, description="Private key (PEM) of that certificate, without a password."
    )
    replica_heartbeat_interval_ms: int = Field(
        default=200,
        ge=10,
        le=10_000,
        description="How often other replicas are asked whether they live, in milliseconds.",
    )
    replica_silence_ms: int = Field(
        default=2_000,
        ge=100,
        le=600_000,
        description="A replica that has not answered for so long is held to be frozen, in "
        "milliseconds; at least five times the interval. One that was never heard is not waited "
        "for any more in the replicas' queue.",
    )
    replica_connect_timeout_ms: int = Field(
        default=100,
        ge=10,
        le=60_000,
        description="A replica whose connection has ended, and that nobody answers for at its "
        "address for so long, is held to be gone, in milliseconds.",
    )
    suspicion_backoff_seconds: int = Field(
        default=30,
        ge=1,
        le=3_600,
        description="How long after a take-over by suspicion the next one may come, in seconds. "
        "The time doubles with each, up to an hour. A replica whose connection has ended and whose "
        "port refuses another one is dead: its take-over neither waits nor counts.",
    )

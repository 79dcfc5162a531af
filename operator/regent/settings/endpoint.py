"""Settings of the endpoint that brokers and clients ask: a part of those of the process."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self

from pydantic import BaseModel, Field, field_validator, model_validator
from pydantic_settings import NoDecode

from regent.model.cluster import Address
from regent.settings.hosts import HostOfOthers
from regent.settings.lists import ListenerAddress, Principal, parts

SaslMechanism = Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]

_LARGEST_PORT: Final = 65_535
_LISTENER_ADDRESS: Final = re.compile(
    r"(?P<listener>[^\s:/]+)://(\[(?P<ipv6>[0-9a-fA-F:.]+)\]|(?P<host>[^\s:/\[\]]*))"
    r":(?P<port>\d{1,5})"
)


class EndpointOptions(BaseModel):
    """Where the endpoint is, how it is announced, whom it believes, and its limits."""

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
    endpoint_advertised_host: HostOfOthers | None = Field(
        default=None,
        description="Name or address under which brokers and clients reach it. By default "
        "`endpoint_host`, and if that stands for all addresses of the machine, the machine's full "
        "name. In a pod its address: nobody else can resolve its name (the chart sets it).",
    )
    endpoint_advertised_port: int | None = Field(
        default=None, ge=1, le=65_535, description="The same for the port."
    )
    endpoint_further_listeners: Annotated[tuple[ListenerAddress, ...], NoDecode] = Field(
        default=(),
        description="Further ports, each for one of the brokers' listeners, as "
        "`EXTERNAL://0.0.0.0:9093`, separated by commas; without a host on `endpoint_host`. Needed "
        "where several listeners of the brokers have the security protocol of the endpoint: "
        "clients of each then see the controller at a port of theirs, and their requests are "
        "passed on to brokers by the same listener.",
    )
    endpoint_advertised_listeners: Annotated[tuple[ListenerAddress, ...], NoDecode] = Field(
        default=(),
        description="Names or addresses, with ports, under which the users of one of the brokers' "
        "listeners reach the endpoint, if they are others than the advertised host and the port "
        "that is listened on: `EXTERNAL://kafka.example.com:9095`, separated by commas; without a "
        "host the advertised one.",
    )
    endpoint_announced_listeners: Annotated[tuple[str, ...], NoDecode] = Field(
        default=(),
        description="Names of the brokers' listeners, separated by commas, under which the "
        "controller appears beside the brokers, at the advertised addresses. By default all whose "
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
        "endpoint and no port in `endpoint_further_listeners`; with several of them nothing is "
        "passed on.",
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
    endpoint_super_users: Annotated[tuple[Principal, ...], NoDecode] = Field(
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
        description="The same for one address (with IPv6 for a network of 64 bits): one more "
        "closes the one of that address that is idle longest, a broker's last. Clients behind NAT "
        "share an address.",
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
        "of the address that holds most the connection that does is closed.",
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

    @field_validator(
        "endpoint_sasl_mechanisms",
        "endpoint_announced_listeners",
        "endpoint_further_listeners",
        "endpoint_advertised_listeners",
        mode="before",
    )
    @classmethod
    def _split_names(cls, value: Any) -> Any:
        return parts(value, ",")

    @field_validator("endpoint_further_listeners", "endpoint_advertised_listeners")
    @classmethod
    def _check_listener_addresses(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        listener_addresses(value)
        return value

    @model_validator(mode="after")
    def _check_port_of_further_listeners(self) -> Self:
        if self.endpoint_further_listeners and self.endpoint_port is None:
            raise ValueError(
                "endpoint_further_listeners has listeners beside that of endpoint_port, which is "
                "not set"
            )
        return self

    @field_validator("endpoint_super_users", mode="before")
    @classmethod
    def _split_principals(cls, value: Any) -> Any:
        """Names of certificates' subjects have commas."""
        return parts(value, ";")

    @field_validator("endpoint_super_users")
    @classmethod
    def _check_principals(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        wrong = [each for each in value if not re.fullmatch(r"[^:]+:.+", each)]
        if wrong:
            raise ValueError(f"{wrong[0]!r} is no principal such as User:kafka")
        return value


def listener_addresses(values: Iterable[str]) -> dict[str, Address]:
    """Addresses by the name of their listener, out of Kafka's notation: ``EXTERNAL://host:9093``.

    Names are in upper case, as Kafka reads them. The host may be empty.

    Raises:
        ValueError: Names the value that has another form, and the listener that comes twice.
    """
    addresses: dict[str, Address] = {}
    for value in values:
        found = _LISTENER_ADDRESS.fullmatch(value)
        port = 0 if found is None else int(found["port"])
        if found is None or port > _LARGEST_PORT:
            raise ValueError(f"{value!r} is no listener such as EXTERNAL://kafka.example.com:9093")
        listener = found["listener"].upper()
        if listener in addresses:
            raise ValueError(f"{value!r}: the listener {listener} has an address already")
        addresses[listener] = Address(found["ipv6"] or found["host"], port)
    return addresses

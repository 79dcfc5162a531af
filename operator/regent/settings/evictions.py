"""Settings of the eviction hook: a part of those of the process."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, Field, field_validator
from pydantic_settings import NoDecode

from regent.settings.lists import PodLabel, parts

_LABEL: Final = re.compile(r"[^=\s]+=[^=\s]*", re.ASCII)


class EvictionOptions(BaseModel):
    """Where the API server asks whether a pod may be evicted, and what is done before."""

    eviction_port: int | None = Field(
        default=None,
        ge=0,
        le=65_535,
        description="Port on which the API server asks, with HTTPS, whether a broker's pod may be "
        "evicted: see docs/broker-drain.md. 0 takes any free one. By default it cannot ask.",
    )
    eviction_host: str | None = Field(
        default=None,
        description="Address of that port. By default all addresses of the machine.",
    )
    eviction_certificate_file: Path | None = Field(
        default=None,
        description="Certificate with its chain (PEM) for that port. It and its key are read again "
        "when they have changed.",
    )
    eviction_key_file: Path | None = Field(
        default=None, description="Private key (PEM) of that certificate, without a password."
    )
    eviction_token_file: Path | None = Field(
        default=None,
        description="File with a secret of lower case letters and digits: only who asks for the "
        "path `/evictions/SECRET` is answered. It is read for each request. Without it everybody "
        "who reaches the port can have brokers drained.",
    )
    eviction_pods: Annotated[tuple[PodLabel, ...], NoDecode] = Field(
        default=(),
        description="Labels of the brokers' pods, as `NAME=VALUE`: a pod with all of them is a "
        "broker. As option and in the environment separated by commas.",
    )
    eviction_broker_id_label: str | None = Field(
        default=None,
        description="Label of a broker's pod that has the broker's id. By default the number at "
        "the end of the name of a StatefulSet's pod is the id. A pod's annotation "
        "`kafka.regent.dev/broker-id` wins over both.",
    )
    eviction_mode: Literal["Leadership", "Replicas"] = Field(
        default="Leadership",
        description="Mode of the BrokerDrains that are made for evictions.",
    )
    eviction_namespace: str | None = Field(
        default=None,
        description="Namespace in which they are made. It has to be one that is served.",
    )
    eviction_abandoned_after_s: float = Field(
        default=3_600.0,
        ge=60.0,
        le=2_592_000.0,
        description="Such a BrokerDrain is undone when nobody has asked for the eviction for so "
        "many seconds, and the pod is still there.",
    )

    @field_validator("eviction_pods", mode="before")
    @classmethod
    def _split_labels(cls, value: Any) -> Any:
        return parts(value, ",")

    @field_validator("eviction_pods")
    @classmethod
    def _are_labels(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for label in value:
            if _LABEL.fullmatch(label) is None:
                raise ValueError(f"{label!r} is no label: write NAME=VALUE")
        return value

"""Settings for plans that are made on Spark: a part of those of the process. See docs/spark.md."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, Field, field_validator
from pydantic_settings import NoDecode

from regent.planning.workspaces import FolderUrl
from regent.settings.lists import WorkspaceUrl, parts


class SparkOptions(BaseModel):
    """Where drivers of SparkApplications fetch their tasks, and what resources may ask for."""

    planner_exchange_host: str = Field(
        default="127.0.0.1",
        description="Address on which drivers of SparkApplications (`spec.rebalance.spark`) fetch "
        "snapshots and hand in plans. In a pod: `0.0.0.0`.",
    )
    planner_exchange_port: int | None = Field(
        default=None,
        ge=0,
        le=65_535,
        description="Its port; 0 takes any free one. By default there is none, and no plan is made "
        "on Spark.",
    )
    planner_exchange_url: str | None = Field(
        default=None,
        pattern=r"^https?://[^\s/]+$",
        description="URL under which drivers reach it, such as "
        "`http://regent-exchange.kafka:8090`. All addresses of the name are tried, so it may stand "
        "for all replicas of Regent. `https` with `planner_exchange_tls_certificate_file`, else "
        "`http`. By default the address and port above.",
    )
    planner_exchange_tls_certificate_file: Path | None = Field(
        default=None,
        description="Certificate (PEM) of the exchange with its chain, for the name in "
        "`planner_exchange_url`. Without it, snapshots, plans and tokens travel in the clear. It "
        "and the key are read again when they have changed.",
    )
    planner_exchange_tls_key_file: Path | None = Field(
        default=None, description="Private key (PEM) of that certificate, without a password."
    )
    planner_exchange_tls_ca_file: Path | None = Field(
        default=None,
        description="Certificate authorities (PEM) by which drivers know the exchange; they get "
        "them with their token. By default those of the planner's image.",
    )
    planner_exchange_max_bytes: int = Field(
        default=128 * 1024**2,
        ge=1024,
        le=2**31,
        description="Size of a plan that is handed in, or that the planner beside Regent writes. A "
        "partition that is changed takes about 150 bytes. It is held in memory.",
    )
    spark_images: Annotated[tuple[str, ...], NoDecode] = Field(
        default=(),
        description="Images that `spec.rebalance.spark.image` may name, separated by commas, with "
        "`*` for any characters. By default none.",
    )
    spark_service_accounts: Annotated[tuple[str, ...], NoDecode] = Field(
        default=("spark",),
        description="Service accounts that `spec.rebalance.spark.serviceAccount` may name, in the "
        "same form. Whoever may create a PartitionReassignment has the planner's image run as one.",
    )
    spark_workspaces: Annotated[tuple[WorkspaceUrl, ...], NoDecode] = Field(
        default=(),
        description="URLs of folders, separated by commas: `spec.rebalance.spark.workspace` may "
        "name these, and folders below. Drivers write copies there of the snapshot, which has all "
        "topics of the cluster, and of the plan. By default none.",
    )
    spark_concurrent_jobs: int = Field(
        default=4,
        ge=1,
        le=32,
        description="How many jobs on Spark are waited for at the same time, each for another "
        "PartitionReassignment. One that finds no room for its pods holds up none of the others "
        "before there are so many. The snapshot of each is held in memory: 100 bytes for a "
        "partition, and 20 for a replica.",
    )

    @field_validator("spark_images", "spark_service_accounts", "spark_workspaces", mode="before")
    @classmethod
    def _split_patterns(cls, value: Any) -> Any:
        return parts(value, ",")

    @field_validator("spark_workspaces")
    @classmethod
    def _check_workspaces(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for url in value:
            FolderUrl.parse(url)
        return value

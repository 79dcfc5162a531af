"""``spec.rebalance.spark``: the SparkApplication that makes the plan (docs/spark.md)."""

from __future__ import annotations

import enum
from typing import Annotated, Final

from pydantic import Field

from regent.resources.base import ApiModel

MAX_SPARK_CONF: Final = 100

_DNS_SUBDOMAIN: Final = r"^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$"
_SPARK_MEMORY: Final = r"^[1-9][0-9]{0,8}[kmgt]$"
"""As Spark writes it: what the CRD calls memory is no quantity of Kubernetes."""

_CPU: Final = r"^([0-9]{1,6}m|[0-9]{1,4}(\.[0-9]{1,3})?)$"

ConfValue = Annotated[str, Field(max_length=4096)]
DnsName = Annotated[str, Field(min_length=1, max_length=253, pattern=_DNS_SUBDOMAIN)]


class ImagePullPolicy(enum.StrEnum):
    """When an image is pulled."""

    ALWAYS = "Always"
    IF_NOT_PRESENT = "IfNotPresent"
    NEVER = "Never"


class SparkPod(ApiModel):
    """What a pod of Spark may take."""

    cores: int = Field(default=1, description="Cores that Spark uses.", ge=1, le=1000)
    core_request: str | None = Field(
        default=None,
        description="Processors that the pod requests. Default: as many as cores.",
        max_length=16,
        pattern=_CPU,
    )
    memory: str = Field(
        default="1g",
        description="Memory of the JVM, such as 2g or 512m.",
        max_length=16,
        pattern=_SPARK_MEMORY,
    )
    memory_overhead: str | None = Field(
        default=None,
        description="Memory beside the JVM's: the planner is in it, which takes about 400 bytes "
        "for a replica. Default: Spark's, 40 percent of the JVM's, at least 384m.",
        max_length=16,
        pattern=_SPARK_MEMORY,
    )


class SparkExecutors(SparkPod):
    """Executors."""

    instances: int = Field(default=1, description="How many.", ge=1, le=1000)


class RebalanceSpark(ApiModel):
    """A SparkApplication of the Kubeflow Spark Operator, in the namespace of the resource."""

    image: str = Field(
        description="Image of driver and executors: spark_tasks/Dockerfile describes it. Regent's "
        "setting spark_images has to allow it.",
        min_length=1,
        max_length=512,
        pattern=r"^[^\s]+$",
    )
    image_pull_policy: ImagePullPolicy = Field(
        default=ImagePullPolicy.IF_NOT_PRESENT, description="When the image is pulled."
    )
    image_pull_secrets: tuple[DnsName, ...] = Field(
        default=(),
        description="Secrets with which it is pulled.",
        max_length=16,
        json_schema_extra={"x-kubernetes-list-type": "set"},
    )
    spark_version: str = Field(
        default="4.3.0",
        description="Version of Spark in the image.",
        max_length=32,
        pattern=r"^[0-9]+\.[0-9]+\.[0-9]+$",
    )
    service_account: DnsName = Field(
        default="spark",
        description="Service account of the driver, which creates the executors' pods. Regent's "
        "setting spark_service_accounts has to allow it.",
    )
    driver: SparkPod = Field(default_factory=SparkPod, description="The driver's pod.")
    executor: SparkExecutors = Field(
        default_factory=SparkExecutors, description="The executors' pods."
    )
    spark_conf: dict[str, ConfValue] = Field(
        default={},
        description="Settings that tune Spark, of those that docs/spark.md lists. Others are "
        "refused.",
        max_length=MAX_SPARK_CONF,
    )
    workspace: str | None = Field(
        default=None,
        description="URL of a folder, such as s3a://bucket/plans, where the driver keeps copies of "
        "the snapshot and the plan. Regent's setting spark_workspaces has to allow it. Default: "
        "nowhere.",
        max_length=1024,
        pattern=r"^[a-z][a-z0-9+.-]*:/[^\s]*$",
    )
    timeout_seconds: int = Field(
        default=1800,
        description="How long the job may take from its creation; then it is deleted, and tried "
        "again.",
        ge=10,
        le=86_400,
    )
    ttl_seconds_after_finished: int = Field(
        default=600,
        description="How long the SparkApplication stays when it has ended.",
        ge=1,
        le=2_592_000,
    )

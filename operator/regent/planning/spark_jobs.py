"""A plan as a SparkApplication of the Kubeflow Spark Operator, and what its status says.

docs/spark.md has the life of a job. The API is ``sparkoperator.k8s.io/v1beta2`` as of v2.4.0.
"""

from __future__ import annotations

import datetime
import enum
import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from regent.planning.goals import PlannerGoals
from regent.planning.histories import PlannerHistory
from regent.planning.snapshot import Snapshot
from regent.planning.workspaces import workspace_problem
from regent.resources.kind import GROUP
from regent.resources.rebalance_spark import RebalanceSpark, SparkPod

API_VERSION: Final = "sparkoperator.k8s.io/v1beta2"
KIND: Final = "SparkApplication"

UID_LABEL: Final = f"{GROUP}/reassignment-uid"
TASK_ANNOTATION: Final = f"{GROUP}/task"
TOKEN_ANNOTATION: Final = f"{GROUP}/token-sha256"

CREDENTIALS_FOLDER: Final = "/etc/regent-exchange"
TOKEN_KEY: Final = "token"  # noqa: S105 - the name of a file
AUTHORITIES_KEY: Final = "ca.crt"
MAIN_FILE: Final = "local:///opt/regent/plan_on_spark.py"
DRIVER_CONTAINER: Final = "spark-kubernetes-driver"

_NAME_MAX: Final = 40
"""Characters of the resource's name in a job's name. The operator and Spark append to it, and what
comes of it has to be a label of DNS, 63 characters at most."""

_DIGEST_SHOWN: Final = 12
_DIGEST: Final = re.compile("[0-9a-f]{64}")
"""A SHA-256 in hexadecimal digits."""

_OWN_CONF: Final = {
    "spark.ui.enabled": "false",
    # Spark 4.3 makes a NetworkPolicy, which the role of the operator's chart does not allow.
    "spark.kubernetes.driver.pod.excludedFeatureSteps": (
        "org.apache.spark.deploy.k8s.features.NetworkPolicyFeatureStep"
    ),
}

_CONF_ALLOWED: Final = frozenset(
    {
        "spark.broadcast.blockSize",
        "spark.broadcast.compress",
        "spark.default.parallelism",
        "spark.driver.maxResultSize",
        "spark.dynamicAllocation.enabled",
        "spark.dynamicAllocation.executorIdleTimeout",
        "spark.dynamicAllocation.initialExecutors",
        "spark.dynamicAllocation.maxExecutors",
        "spark.dynamicAllocation.minExecutors",
        "spark.dynamicAllocation.shuffleTracking.enabled",
        "spark.executor.heartbeatInterval",
        "spark.kubernetes.local.dirs.tmpfs",
        "spark.kubernetes.memoryOverheadFactor",
        "spark.locality.wait",
        "spark.memory.fraction",
        "spark.memory.offHeap.enabled",
        "spark.memory.offHeap.size",
        "spark.memory.storageFraction",
        "spark.network.timeout",
        "spark.rpc.askTimeout",
        "spark.rpc.message.maxSize",
        "spark.scheduler.maxRegisteredResourcesWaitingTime",
        "spark.scheduler.minRegisteredResourcesRatio",
        "spark.shuffle.compress",
        "spark.shuffle.file.buffer",
        "spark.shuffle.io.maxRetries",
        "spark.shuffle.io.retryWait",
        "spark.shuffle.spill.compress",
        "spark.speculation",
        "spark.speculation.interval",
        "spark.speculation.multiplier",
        "spark.speculation.quantile",
        "spark.sql.adaptive.advisoryPartitionSizeInBytes",
        "spark.sql.adaptive.coalescePartitions.enabled",
        "spark.sql.adaptive.enabled",
        "spark.sql.autoBroadcastJoinThreshold",
        "spark.sql.broadcastTimeout",
        "spark.sql.files.maxPartitionBytes",
        "spark.sql.files.openCostInBytes",
        "spark.sql.shuffle.partitions",
        "spark.task.cpus",
        "spark.task.maxFailures",
        "spark.ui.enabled",
    }
)
"""Exact names: numbers, sizes, times and switches, the table of docs/spark.md. Among settings with
the same beginnings are paths, URLs, class names and endpoints, which would give the author of a
resource code, volumes, namespaces or accounts beyond those that the administrator allows."""


@dataclass(frozen=True, slots=True)
class PlanOwner:
    """The resource that a plan is made for."""

    namespace: str
    name: str
    uid: str


@dataclass(frozen=True, slots=True)
class SparkTask:
    """What makes a plan a job on Spark.

    Attributes:
        digest: SHA-256 of the task in hexadecimal digits; see :func:`task_digest`.
        history: Whose loads count instead of the snapshot's; None: none.
    """

    owner: PlanOwner
    options: RebalanceSpark
    digest: str
    history: PlannerHistory | None = None

    @property
    def name(self) -> str:
        """Of the SparkApplication: the same for the same task, whichever Regent asks."""
        return f"{_readable(self.owner)}-{self.digest[:_DIGEST_SHOWN]}"


def _readable(owner: PlanOwner) -> str:
    """With what the name of each job of a resource begins.

    It begins with a letter (RFC 1035): the Spark Operator takes no other name, nor do Services.
    """
    name = owner.name.replace(".", "-")
    readable = name if name[0].isalpha() else f"plan-{name}"
    return readable[:_NAME_MAX].rstrip("-")


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkPolicy:
    """What the administrator lets resources ask for.

    Attributes:
        images: Images, with ``*`` for any characters.
        service_accounts: Likewise.
        workspaces: URLs of folders; a workspace is one of these or below one. None: no workspace.
    """

    images: tuple[str, ...]
    service_accounts: tuple[str, ...]
    workspaces: tuple[str, ...] = ()

    def problem(self, options: RebalanceSpark) -> str | None:
        """Why a job is not made, and what to do; None: it is."""
        for name, value, allowed, setting in (
            ("image", options.image, self.images, "spark_images"),
            (
                "serviceAccount",
                options.service_account,
                self.service_accounts,
                "spark_service_accounts",
            ),
        ):
            if not any(_matches(pattern, value) for pattern in allowed):
                named = ", ".join(allowed) or "nothing"
                return (
                    f"spark.{name} {value!r} is not allowed: Regent's setting {setting} allows "
                    f"{named}"
                )
        refused = sorted(options.spark_conf.keys() - _CONF_ALLOWED)
        if refused:
            return (
                f"spark.sparkConf has {refused[0]!r}, which Regent does not pass on: remove it, or "
                "have the administrator set it in the image (docs/spark.md lists what is passed on)"
            )
        if options.workspace is None:
            return None
        problem = workspace_problem(options.workspace, self.workspaces)
        return None if problem is None else f"spark.workspace {problem}"


def _matches(pattern: str, value: str) -> bool:
    return re.fullmatch(".*".join(map(re.escape, pattern.split("*"))), value) is not None


def task_digest(
    owner: PlanOwner,
    snapshot: Snapshot,
    goals: PlannerGoals,
    options: RebalanceSpark,
    history: PlannerHistory | None = None,
) -> str:
    """The identity of a task: who wants what on which cluster.

    Sizes, leaders and capacities are left out. They change all the time, and a plan of somewhat
    older ones is as good as one whose making took a while.
    """
    digest = hashlib.sha256(b"regent task 1\n")
    encoder = msgspec.json.Encoder(order="deterministic")
    brokers = [(each.id, each.rack, each.alive) for each in snapshot.brokers]
    arguments = (*goals.arguments(), *(() if history is None else history.arguments()))
    for part in (owner.uid, arguments, options.to_api(), brokers):
        digest.update(encoder.encode(part) + b"\n")
    for each in snapshot.partitions:
        digest.update(encoder.encode((each.topic, each.partition, each.replicas)))
    return digest.hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Credentials:
    """How the driver of a job reaches Regent.

    Attributes:
        url: Of the exchange.
        token_sha256: Of the token, in hexadecimal digits. It is no secret.
    """

    url: str
    token_sha256: str


def secret_name(job: str, token_sha256: str) -> str:
    """Of the Secret with a token: another one for another token, so that what is left of an earlier
    job is never taken for this one's."""
    return f"{job}-{token_sha256[:8]}"


def spark_application(task: SparkTask, credentials: Credentials) -> dict[str, Any]:
    """The object to be created. It is not changed afterwards: where the Spark Operator finds it
    changed after it has submitted it, it submits it once more, and calls it failed (v2.4.0)."""
    options, name = task.options, task.name
    secret = secret_name(name, credentials.token_sha256)
    spec: dict[str, Any] = {
        "type": "Python",
        "pythonVersion": "3",
        "mode": "cluster",
        "image": options.image,
        "imagePullPolicy": options.image_pull_policy.value,
        "sparkVersion": options.spark_version,
        "mainApplicationFile": MAIN_FILE,
        "arguments": list(_arguments(task, credentials)),
        "sparkConf": {**_OWN_CONF, **options.spark_conf},
        "restartPolicy": {"type": "Never"},
        "timeToLiveSeconds": options.ttl_seconds_after_finished,
        "driver": {
            **_pod(options.driver),
            "serviceAccount": options.service_account,
            "secrets": [{"name": secret, "path": CREDENTIALS_FOLDER, "secretType": "Generic"}],
        },
        "executor": {**_pod(options.executor), "instances": options.executor.instances},
    }
    if options.image_pull_secrets:
        spec["imagePullSecrets"] = list(options.image_pull_secrets)
    return {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": {
            "name": name,
            "namespace": task.owner.namespace,
            "labels": {
                UID_LABEL: task.owner.uid,
                "app.kubernetes.io/managed-by": "regent",
            },
            "annotations": {
                TASK_ANNOTATION: task.digest,
                TOKEN_ANNOTATION: credentials.token_sha256,
            },
            "ownerReferences": [
                {
                    "apiVersion": f"{GROUP}/v1alpha1",
                    "kind": "PartitionReassignment",
                    "name": task.owner.name,
                    "uid": task.owner.uid,
                    "controller": True,
                }
            ],
        },
        "spec": spec,
    }


def _arguments(task: SparkTask, credentials: Credentials) -> Sequence[str]:
    arguments = ["--exchange", credentials.url, "--credentials", CREDENTIALS_FOLDER]
    if task.options.workspace is not None:
        arguments += ["--workspace", f"{task.options.workspace.rstrip('/')}/{task.name}"]
    if task.history is not None:
        arguments += task.history.arguments()
    return arguments


def _pod(options: SparkPod) -> dict[str, Any]:
    pod: dict[str, Any] = {"cores": options.cores, "memory": options.memory}
    if options.core_request is not None:
        pod["coreRequest"] = options.core_request
    if options.memory_overhead is not None:
        pod["memoryOverhead"] = options.memory_overhead
    return pod


def job_secret(
    task: SparkTask, job: SparkJob, *, token: str, authorities: str | None
) -> dict[str, Any]:
    """The Secret with what the driver of a job needs. It is deleted with the job."""
    data = {TOKEN_KEY: token}
    if authorities is not None:
        data[AUTHORITIES_KEY] = authorities
    owner = {"apiVersion": API_VERSION, "kind": KIND, "name": job.name, "uid": job.uid}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": secret_name(job.name, job.token_sha256),
            "namespace": task.owner.namespace,
            "labels": {UID_LABEL: task.owner.uid, "app.kubernetes.io/managed-by": "regent"},
            "ownerReferences": [owner],
        },
        "type": "Opaque",
        "immutable": True,
        "stringData": data,
    }


class JobEnd(enum.Enum):
    """How a job has ended."""

    COMPLETED = "COMPLETED"
    FAILED = "FAILED"


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkJob:
    """A SparkApplication as it was read.

    Attributes:
        digest: Of the task that it was made for; "": somebody else has made it.
        owner_uid: Of the resource that owns it; "": none does.
        token_sha256: "" if it has none, or what is no digest: somebody has edited it.
        is_being_deleted: Whether somebody has deleted it.
        created_at: When it was created, aware.
        state: In the operator's words; "": the operator has not seen it.
        problem: The operator's error message.
        driver_pod: "" if there is none yet.
    """

    name: str
    uid: str
    digest: str
    owner_uid: str
    token_sha256: str
    is_being_deleted: bool
    created_at: datetime.datetime
    state: str = ""
    problem: str = ""
    driver_pod: str = ""

    @property
    def end(self) -> JobEnd | None:
        """How it has ended; None: it has not."""
        return next((end for end in JobEnd if end.value == self.state), None)

    def is_of(self, owner: PlanOwner) -> bool:
        """Whether Regent has made it for a resource. A copy that somebody has made has its label,
        its annotations and its owner, too, and another name; a label can be taken off."""
        name = re.escape(_readable(owner)) + f"-[0-9a-f]{{{_DIGEST_SHOWN}}}"
        return self.owner_uid == owner.uid and re.fullmatch(name, self.name) is not None

    def serves(self, task: SparkTask) -> bool:
        """Whether its answer is to be waited for, if its Secret was created."""
        return (
            self.digest == task.digest
            and self.token_sha256 != ""
            and not self.is_being_deleted
            and self.end is None
        )


def read_job(body: Mapping[str, Any]) -> SparkJob:
    """A SparkApplication of the API. A status that is no such is read as far as it goes."""
    metadata = body["metadata"]
    annotations = metadata.get("annotations") or {}
    status = _object(body.get("status"))
    state = _object(status.get("applicationState"))
    return SparkJob(
        name=metadata["name"],
        uid=metadata["uid"],
        digest=annotations.get(TASK_ANNOTATION, ""),
        owner_uid=_owner_uid(metadata.get("ownerReferences") or ()),
        token_sha256=_digest(annotations.get(TOKEN_ANNOTATION)),
        is_being_deleted="deletionTimestamp" in metadata,
        created_at=datetime.datetime.fromisoformat(metadata["creationTimestamp"]),
        state=str(state.get("state") or ""),
        problem=str(state.get("errorMessage") or ""),
        driver_pod=str(_object(status.get("driverInfo")).get("podName") or ""),
    )


def _owner_uid(references: Sequence[Mapping[str, Any]]) -> str:
    return next((each["uid"] for each in references if each.get("controller")), "")


def _digest(value: object) -> str:
    return value if isinstance(value, str) and _DIGEST.fullmatch(value) else ""


def _object(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


_PROBLEM_MAX: Final = 240
_LOG_MAX: Final = 480
"""Characters. The message of a condition has room for a thousand; a log's end says most."""


def failure(job: SparkJob, what: str, log: str) -> str:
    """What is said of a job that has given no plan.

    Args:
        what: What has happened.
        log: The end of the driver's log, or why it is not known.
    """
    state = f", state {job.state}" if job.state else ", which the Spark Operator has not seen"
    problem = " ".join(job.problem.split())
    said = f"; the operator says: {problem[:_PROBLEM_MAX]}" if problem else ""
    return f"SparkApplication {job.name}{state}: {what}{said}; driver's log: {_tail(log)}"


def _tail(log: str) -> str:
    text = log.strip()
    if not text:
        return "nothing"
    return text if len(text) <= _LOG_MAX else f"…{text[-_LOG_MAX:]}"

"""A plan as a SparkApplication: its identity, what may be asked for, what its status says."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from regent.planning.goals import PlannerGoals
from regent.planning.histories import PlannerHistory
from regent.planning.snapshot import Snapshot, SnapshotBroker, SnapshotPartition
from regent.planning.spark_jobs import (
    Credentials,
    JobEnd,
    PlanOwner,
    SparkPolicy,
    SparkTask,
    failure,
    job_secret,
    read_job,
    secret_name,
    spark_application,
    task_digest,
)
from regent.planning.workspaces import workspace_problem
from regent.resources.rebalance_spark import RebalanceSpark

OWNER = PlanOwner("shop", "balance", "u1")
OPTIONS = RebalanceSpark(image="planner:1")
SNAPSHOT = Snapshot(
    tuple(SnapshotBroker(i, "a", alive=True, disk_bytes=100) for i in (1, 2, 3)),
    tuple(SnapshotPartition("orders", p, (1, 2), 1, (10, 10)) for p in range(3)),
)
GOALS = PlannerGoals(drained=(3,))
TOKEN_SHA256 = "ab" * 32


def task(options: RebalanceSpark = OPTIONS, owner: PlanOwner = OWNER) -> SparkTask:
    return SparkTask(owner, options, task_digest(owner, SNAPSHOT, GOALS, options))


def manifest(options: RebalanceSpark = OPTIONS) -> dict[str, Any]:
    return spark_application(
        task(options), Credentials(url="http://exchange:8090", token_sha256=TOKEN_SHA256)
    )


def body(**status: Any) -> dict[str, Any]:
    """A job as the API server has it."""
    made = manifest()
    made["metadata"] |= {"uid": "j1", "creationTimestamp": "2026-01-02T03:04:05Z"}
    return made | {"status": status}


def state(name: str, message: str = "") -> dict[str, Any]:
    return {
        "applicationState": {"state": name, "errorMessage": message},
        "driverInfo": {"podName": "balance-driver"},
    }


def changed(*, replicas: tuple[int, ...] = (1, 2), size: int = 10, leader: int = 1) -> Snapshot:
    first, *others = SNAPSHOT.partitions
    other = SnapshotPartition("orders", 0, replicas, leader, (size, size))
    assert first.partition == 0
    return dataclasses.replace(SNAPSHOT, partitions=(other, *others))


def test_another_task_is_another_job() -> None:
    digests = {
        task_digest(OWNER, SNAPSHOT, GOALS, OPTIONS),
        task_digest(dataclasses.replace(OWNER, uid="u2"), SNAPSHOT, GOALS, OPTIONS),
        task_digest(OWNER, changed(replicas=(2, 1)), GOALS, OPTIONS),
        task_digest(OWNER, dataclasses.replace(SNAPSHOT, brokers=()), GOALS, OPTIONS),
        task_digest(OWNER, SNAPSHOT, PlannerGoals(), OPTIONS),
        task_digest(OWNER, SNAPSHOT, GOALS, RebalanceSpark(image="planner:2")),
    }
    assert len(digests) == 6


def test_what_changes_all_the_time_makes_no_other_job() -> None:
    moved_on = changed(size=11, leader=2)
    assert moved_on.encode() != SNAPSHOT.encode()
    assert task_digest(OWNER, moved_on, GOALS, OPTIONS) == task().digest


@pytest.mark.parametrize(
    "name", ["balance", "a.b", "x" * 253, "a." * 40 + "z", "2026-07", "7" * 253]
)
def test_a_job_has_a_name_that_spark_can_lengthen(name: str) -> None:
    made = task(owner=dataclasses.replace(OWNER, name=name)).name
    assert len(made) <= 53
    assert "." not in made
    assert made[0].isalpha(), "the Spark Operator wants a label of DNS as of RFC 1035"
    assert made[-1].isalnum()


def test_the_object_has_what_was_asked_for_and_no_secret() -> None:
    options = RebalanceSpark.model_validate(
        {
            "image": "planner:1",
            "serviceAccount": "planner",
            "driver": {"cores": 2, "memory": "3g", "memoryOverhead": "512m", "coreRequest": "500m"},
            "executor": {"instances": 4},
            "sparkConf": {"spark.sql.shuffle.partitions": "8", "spark.ui.enabled": "true"},
            "workspace": "s3a://bucket/plans/",
            "imagePullSecrets": ["registry"],
        }
    )
    made = manifest(options)
    spec = made["spec"]
    name = task(options).name
    assert spec["driver"] == {
        "cores": 2,
        "memory": "3g",
        "memoryOverhead": "512m",
        "coreRequest": "500m",
        "serviceAccount": "planner",
        "secrets": [
            {
                "name": secret_name(name, TOKEN_SHA256),
                "path": "/etc/regent-exchange",
                "secretType": "Generic",
            }
        ],
    }
    assert spec["executor"] == {"cores": 1, "memory": "1g", "instances": 4}
    assert spec["sparkConf"]["spark.sql.shuffle.partitions"] == "8"
    assert spec["sparkConf"]["spark.ui.enabled"] == "true", "what is asked for counts"
    assert spec["arguments"][-2:] == ["--workspace", f"s3a://bucket/plans/{name}"]
    assert spec["imagePullSecrets"] == ["registry"]
    assert spec["timeToLiveSeconds"] == 600
    (owner,) = made["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["uid"]) == ("PartitionReassignment", "u1")


def test_a_job_with_a_history_is_another_one_and_its_driver_is_told() -> None:
    history = PlannerHistory(
        place="s3a://bucket/regent", window_s=3600, percentile=99, max_age_s=600, cluster="c1"
    )
    digest = task_digest(OWNER, SNAPSHOT, GOALS, OPTIONS, history)
    assert digest != task().digest
    made = spark_application(
        SparkTask(OWNER, OPTIONS, digest, history),
        Credentials(url="http://exchange:8090", token_sha256=TOKEN_SHA256),
    )
    assert made["spec"]["arguments"][-5:] == [
        "--history=s3a://bucket/regent",
        "--window=3600s",
        "--percentile=99",
        "--history-max-age=600s",
        "--cluster=c1",
    ]


def test_the_secret_belongs_to_the_job() -> None:
    job = read_job(body())
    made = job_secret(task(), job, token="secret", authorities="PEM")
    (owner,) = made["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["uid"]) == ("SparkApplication", "j1")
    assert made["stringData"] == {"token": "secret", "ca.crt": "PEM"}
    mounted = body()["spec"]["driver"]["secrets"][0]["name"]
    assert made["metadata"]["name"] == mounted
    assert secret_name(job.name, "cd" * 32) != mounted, "another token is in another Secret"


POLICY = SparkPolicy(images=("example.test/planner:*",), service_accounts=("spark", "planner-*"))


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        ({"image": "example.test/planner:1"}, None),
        ({"image": "example.test/planner:1", "serviceAccount": "planner-a"}, None),
        (
            {"image": "evil:1"},
            "spark.image 'evil:1' is not allowed: Regent's setting spark_images allows "
            "example.test/planner:*",
        ),
        (
            {"image": "example.test/planner:1", "serviceAccount": "admin"},
            "spark.serviceAccount 'admin' is not allowed: Regent's setting spark_service_accounts "
            "allows spark, planner-*",
        ),
    ],
)
def test_images_and_accounts_are_the_administrators(
    spec: dict[str, Any], problem: str | None
) -> None:
    assert POLICY.problem(RebalanceSpark.model_validate(spec)) == problem


def test_without_images_nothing_is_allowed() -> None:
    problem = SparkPolicy(images=(), service_accounts=("spark",)).problem(OPTIONS)
    assert problem is not None
    assert "allows nothing" in problem


@pytest.mark.parametrize(
    ("key", "is_allowed"),
    [
        ("spark.sql.shuffle.partitions", True),
        ("spark.dynamicAllocation.maxExecutors", True),
        ("spark.speculation", True),
        ("spark.hadoop.fs.s3a.endpoint", False),
        ("spark.hadoop.fs.s3a.aws.credentials.provider", False),
        ("spark.sql.catalogImplementation", False),
        ("spark.sql.hive.metastore.jars.path", False),
        ("spark.sql.extensions", False),
        ("spark.sql.warehouse.dir", False),
        ("spark.eventLog.dir", False),
        ("spark.io.compression.codec", False),
        ("spark.scheduler.allocation.file", False),
        ("spark.shuffle.manager", False),
        ("spark.storage.decommission.fallbackStorage.path", False),
        ("spark.ui.filters", False),
        # without the step DriverKubernetesCredentialsFeatureStep the pod has another account
        ("spark.kubernetes.driver.pod.excludedFeatureSteps", False),
        ("spark.sql.shuffle.partitions.x", False),
        ("spark.sql.shuffle.partitions ", False),
        ("spark.kubernetes.driver.volumes.hostPath.x.options.path", False),
        ("spark.kubernetes.namespace", False),
        ("spark.kubernetes.authenticate.driver.serviceAccountName", False),
        ("spark.jars", False),
        ("spark.driver.extraJavaOptions", False),
        ("spark.master", False),
        ("spark.sql", False),
        ("Xspark.sql.x", False),
    ],
)
def test_spark_conf_passes_only_the_exact_names_that_tune_spark(key: str, is_allowed: bool) -> None:
    options = RebalanceSpark.model_validate(
        {"image": "example.test/planner:1", "sparkConf": {key: "1"}}
    )
    problem = POLICY.problem(options)
    assert (problem is None) == is_allowed
    assert problem is None or key in problem


WORKSPACES = ("s3a://bucket/plans", "file:///plans/", "abfss://plans@account.test/regent")


@pytest.mark.parametrize(
    "workspace",
    [
        "s3a://bucket/plans",
        "s3a://bucket/plans/",
        "s3a://bucket//plans/team-a",
        "s3://bucket/plans/team-a",
        "file:/plans/a",
        "file:////plans",
        "abfss://plans@account.test/regent/a",
    ],
)
def test_workspace_within_an_allowed_folder_is_taken(workspace: str) -> None:
    assert workspace_problem(workspace, WORKSPACES) is None


@pytest.mark.parametrize(
    ("workspace", "problem"),
    [
        ("s3a://bucket/plans-of-others", "is not allowed"),
        ("s3a://bucket", "is not allowed"),
        ("s3a://bucket/", "is not allowed"),
        ("s3a:/bucket/plans", "is not allowed"),
        ("s3a:///bucket/plans", "is not allowed"),
        ("s3a://bucket.evil.test/plans", "is not allowed"),
        ("s3a://bucket@evil/plans", "is not allowed"),
        ("s3a://evil@bucket/plans", "is not allowed"),
        ("s3a://bucket:80/plans", "is not allowed"),
        ("S3A://bucket/plans", "is no URL of a folder"),
        ("hdfs://bucket/plans", "is not allowed"),
        ("file://bucket/plans", "is not allowed"),
        ("abfss://all@account.test/regent", "is not allowed"),
        ("s3a://bucket/plans/../all", "is ambiguous"),
        ("s3a://bucket/plans/..", "is ambiguous"),
        ("s3a://bucket/plans/./a", "is ambiguous"),
        ("s3a://bucket/plans/%2e%2e/all", "is ambiguous"),
        ("s3a://bucket/plans/..%2fall", "is ambiguous"),
        ("s3a://bucket/plans\\..\\all", "is ambiguous"),
        ("s3a://bucket/plans?x", "is ambiguous"),
        ("s3a://bucket/plans#x", "is ambiguous"),
        ("s3a://bucket/plans/a b", "is ambiguous"),
        ("s3a://bucket/plans\x00", "is no URL of a folder"),
        ("s3a:plans", "is no URL of a folder"),
        ("/plans", "is no URL of a folder"),
        ("s3a://bucket:x@evil/plans", "has a password"),
    ],
)
def test_workspace_outside_the_allowed_folders_is_refused(workspace: str, problem: str) -> None:
    assert problem in (workspace_problem(workspace, WORKSPACES) or "it is taken")


def test_no_workspace_is_allowed_by_default() -> None:
    options = RebalanceSpark(image="example.test/planner:1", workspace="s3a://bucket/all")
    assert POLICY.problem(options) == (
        "spark.workspace 's3a://bucket/all' is not allowed: Regent's setting spark_workspaces "
        "allows nothing"
    )


def test_refused_workspace_is_named_with_the_allowed_ones_and_without_secrets() -> None:
    def problem(workspace: str, *allowed: str) -> str | None:
        options = RebalanceSpark(image="planner:1", workspace=workspace)
        policy = SparkPolicy(images=("*",), service_accounts=("*",), workspaces=allowed)
        return policy.problem(options)

    assert problem("s3a://bucket/all", *WORKSPACES[:2]) == (
        "spark.workspace 's3a://bucket/all' is not allowed: Regent's setting spark_workspaces "
        "allows s3a://bucket/plans, file:///plans/, and folders below"
    )
    said = problem("s3a://key:hunter2@bucket/plans?token=hunter2", *WORKSPACES)
    assert said is not None
    assert "hunter2" not in said


def test_a_job_is_waited_for_until_it_has_ended() -> None:
    for name in ("", "SUBMITTED", "RUNNING", "SUCCEEDING", "FAILING", "UNKNOWN"):
        job = read_job(body(**state(name)))
        assert (job.end, job.serves(task())) == (None, True), name
    for end in JobEnd:
        job = read_job(body(**state(end.value)))
        assert (job.end, job.serves(task())) == (end, False)


def test_a_job_without_a_token_or_that_is_another_one_is_not_waited_for() -> None:
    half_made = body()
    del half_made["metadata"]["annotations"]["kafka.regent.dev/token-sha256"]
    deleted = body()
    deleted["metadata"]["deletionTimestamp"] = "2026-01-02T03:05:05Z"
    others = task(RebalanceSpark(image="planner:2"))
    assert not read_job(half_made).serves(task())
    assert not read_job(deleted).serves(task())
    assert not read_job(body()).serves(others)


@pytest.mark.parametrize("edited", [TOKEN_SHA256 + "\u00e9", TOKEN_SHA256.upper(), "ab", ""])
def test_a_job_whose_token_was_edited_is_not_waited_for(edited: str) -> None:
    job = body()
    job["metadata"]["annotations"]["kafka.regent.dev/token-sha256"] = edited
    assert read_job(job).token_sha256 == ""
    assert not read_job(job).serves(task())


def test_a_status_that_is_none_is_read_as_far_as_it_goes() -> None:
    job = read_job(body(applicationState=None, driverInfo="x"))
    assert (job.state, job.driver_pod) == ("", "")


def test_a_failure_has_the_operators_words_and_the_end_of_the_log() -> None:
    job = read_job(body(**state("FAILED", "driver container failed\nwith ExitCode: 137")))
    said = failure(job, "it has failed", "x" * 10_000 + "\nKilled\n")
    assert said.startswith(f"SparkApplication {job.name}, state FAILED: it has failed; ")
    assert "the operator says: driver container failed with ExitCode: 137" in said
    assert said.endswith("xxx\nKilled")
    assert len(said) < 1000, "a condition's message has room for it"
    unseen = failure(read_job(body()), "it took longer than 10 s", "")
    assert "which the Spark Operator has not seen" in unseen
    assert unseen.endswith("driver's log: nothing")

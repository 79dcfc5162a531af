"""The planner as a SparkApplication: created or adopted, followed, cleaned up (docs/spark.md).

Nothing about a job is known in this process only. Its name follows from the task, and all else is
in the object: so another Regent goes on with it.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import logging
import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final

from regent.kube.client import KubeClient
from regent.kube.errors import (
    KubeApiError,
    KubeConflictError,
    KubeError,
    KubeNotFoundError,
)
from regent.kube.eviction.broker_pods import is_name
from regent.kube.plan_exchange_port import Offer, PlanExchangePort
from regent.kube.plan_runner import PlanTask
from regent.planning.results import (
    InvalidGoals,
    PlannerFailed,
    PlannerMissing,
    PlanResult,
    read_answer,
)
from regent.planning.spark_jobs import (
    API_VERSION,
    DRIVER_CONTAINER,
    UID_LABEL,
    Credentials,
    JobEnd,
    PlanOwner,
    SparkJob,
    SparkPolicy,
    SparkTask,
    failure,
    job_secret,
    read_job,
    spark_application,
)

logger = logging.getLogger(__name__)

_TOKEN_BYTES: Final = 32
_LOG_LINES: Final = "20"
_LOG_BYTES: Final = "16384"
_GONE_WITHIN_S: Final = 60.0
_DEFINITION_ENDS: Final = "not allowed while custom resource definition is terminating"
_RIGHT_MISSING: Final = re.compile(r" cannot \w+ resource\b")
"""The API server's words, and all that tells refusals (403) from one another: those of quotas and
of admission policies have the same status."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkRunner:
    """A :class:`~regent.kube.plan_runner.JobRunner`.

    Attributes:
        policy: What resources may ask for.
        look_every_s: Seconds after which a job is looked at again. An answer is taken at once.
    """

    client: KubeClient
    exchange: PlanExchangePort
    policy: SparkPolicy
    look_every_s: float = 3.0

    async def run(self, task: PlanTask) -> PlanResult:
        """See :class:`~regent.kube.plan_runner.PlanRunner`. Cancelled, the job goes on."""
        spark = task.spark
        assert spark is not None, "it is a job on Spark"
        problem = self.policy.problem(spark.options)
        if problem is not None:
            return InvalidGoals(problem)
        try:
            jobs = await self._jobs_of(spark.owner)
        except KubeNotFoundError as error:
            return PlannerMissing(
                f"spec.rebalance.spark needs the Spark Operator, which is not installed: {error}"
            )
        except KubeError as error:
            return _refused(spark, error)
        try:
            if all(each.name != spark.name for each in jobs):
                jobs = [*jobs, *await self._without_label(spark)]
            return await self._run(task, spark, jobs)
        except KubeError as error:
            return _refused(spark, error)

    async def has_job(self, owner: PlanOwner) -> bool:
        """See :class:`~regent.kube.plan_runner.JobRunner`."""
        return bool(await self._unfinished(owner))

    async def give_up(self, owner: PlanOwner) -> None:
        """See :class:`~regent.kube.plan_runner.JobRunner`."""
        for job in await self._unfinished(owner):
            await self._delete(owner.namespace, job)

    async def _unfinished(self, owner: PlanOwner) -> list[SparkJob]:
        """The jobs of a resource without those that have ended, which stay for their logs."""
        try:
            jobs = await self._jobs_of(owner)
        except KubeNotFoundError:
            return []  # there is no Spark Operator, so there is no job
        return [job for job in jobs if job.end is None]

    async def _run(self, task: PlanTask, spark: SparkTask, jobs: Sequence[SparkJob]) -> PlanResult:
        adopted = next((each for each in jobs if each.serves(spark)), None)
        if adopted is not None and not await self._has_secret(spark, adopted):
            adopted = None
        for job in jobs:
            if job is not adopted:
                await self._remove(spark.owner.namespace, job)
        if adopted is not None:
            logger.info("A planner's job is adopted", extra={"job": adopted.name})
            with self.exchange.offer(task, token_sha256=adopted.token_sha256) as offer:
                outcome = await self._follow(spark, adopted, offer)
            if not isinstance(outcome, SparkJob) or outcome.end is not JobEnd.COMPLETED:
                return await self._result(spark, outcome)
            # The Regent that was before this one may have got its answer, and has died with it.
            logger.info(
                "An adopted job has ended; another one is made", extra={"job": outcome.name}
            )
            await self._remove(spark.owner.namespace, outcome)
        token = secrets.token_urlsafe(_TOKEN_BYTES)
        token_sha256 = hashlib.sha256(token.encode()).hexdigest()
        with self.exchange.offer(task, token_sha256=token_sha256) as offer:
            job = await self._create(spark, token, token_sha256)
            return await self._result(spark, await self._follow(spark, job, offer))

    async def _create(self, spark: SparkTask, token: str, token_sha256: str) -> SparkJob:
        authorities = self.exchange.authorities
        credentials = Credentials(url=self.exchange.url, token_sha256=token_sha256)
        namespace = spark.owner.namespace
        job = read_job(
            await self.client.create(_jobs(namespace), spark_application(spark, credentials))
        )
        secret = job_secret(spark, job, token=token, authorities=authorities)
        try:
            await self.client.create(_secrets(namespace), secret)
        except KubeError:
            with contextlib.suppress(KubeError):  # the next attempt deletes it
                await self._delete(namespace, job)  # else its pods wait for the Secret
            raise
        logger.info("A planner's job was created", extra={"job": f"{namespace}/{job.name}"})
        return job

    async def _has_secret(self, spark: SparkTask, job: SparkJob) -> bool:
        """Whether the one who has created a job got as far as its Secret: its name is taken.
        Regent may create Secrets and not read them, so it is asked for by what would create it.
        Where that is refused nobody knows, and a job without it would wait for ever."""
        probe = job_secret(spark, job, token="", authorities=None)
        try:
            await self.client.create(_secrets(spark.owner.namespace), probe, dry_run=True)
        except KubeConflictError:
            return True
        except KubeApiError as error:
            if not error.is_refusal:
                raise
        return False

    async def _result(self, spark: SparkTask, outcome: PlanResult | SparkJob) -> PlanResult:
        """What has come of a job, also of one that has ended without an answer."""
        if not isinstance(outcome, SparkJob):
            return outcome
        assert outcome.end is not None, "else it is followed on"
        return await self._failed(spark.owner.namespace, outcome, _WITHOUT_PLAN[outcome.end])

    async def _follow(self, spark: SparkTask, job: SparkJob, offer: Offer) -> PlanResult | SparkJob:
        """Wait for the answer, or for what keeps it from coming; the job if it has ended without
        one."""
        namespace, timeout_s = spark.owner.namespace, spark.options.timeout_seconds
        loop = asyncio.get_running_loop()
        until = loop.time() + timeout_s - self._age_s(job)
        while True:
            left_s = until - loop.time()
            answer = await offer.wait(max(0.0, min(self.look_every_s, left_s)))
            if answer is None:
                seen = await self._look(namespace, job)
                answer = offer.answer  # it may have come, and the job ended or gone, meanwhile
                if answer is None and isinstance(seen, PlannerFailed):
                    return seen
                job = job if isinstance(seen, PlannerFailed) else seen
            if answer is not None:
                return await asyncio.to_thread(read_answer, answer.status, answer.body)
            if job.end is not None:
                return job
            if left_s <= 0:
                failed = await self._failed(
                    namespace, job, f"it took longer than {timeout_s} s (timeoutSeconds)"
                )
                await self._delete(namespace, job)
                return failed

    def _age_s(self, job: SparkJob) -> float:
        """Seconds since its creation, by the clock of the API server, which has dated it."""
        now = self.client.server_time()
        return 0.0 if now is None else max(0.0, (now - job.created_at).total_seconds())

    async def _look(self, namespace: str, job: SparkJob) -> SparkJob | PlannerFailed:
        """The job as it is now. While the API server does not answer it is what it was: its plan
        does not come by that way."""
        try:
            seen = read_job(await self.client.get(_path(namespace, job.name)))
        except KubeNotFoundError:
            return PlannerFailed(f"SparkApplication {job.name} was deleted before it had a plan")
        except KubeError as error:
            logger.warning(
                "A planner's job cannot be looked at", extra={"job": job.name, "error": str(error)}
            )
            return job
        if seen.uid != job.uid or seen.is_being_deleted:
            return PlannerFailed(f"SparkApplication {job.name} was deleted before it had a plan")
        return seen

    async def _failed(self, namespace: str, job: SparkJob, what: str) -> PlannerFailed:
        log = await self._log(namespace, job)
        logger.error("A planner's job has failed", extra={"job": job.name, "what": what})
        return PlannerFailed(failure(job, what, log))

    async def _log(self, namespace: str, job: SparkJob) -> str:
        """The end of the driver's log, or why there is none."""
        if not job.driver_pod:
            return "it has no pod"
        # It becomes a path of the API: whoever writes statuses of jobs must not choose another one.
        if not is_name(job.driver_pod):
            return f"its pod is {job.driver_pod[:100]!r}, which no pod can be called"
        path = f"/api/v1/namespaces/{namespace}/pods/{job.driver_pod}/log"
        query = {
            "container": DRIVER_CONTAINER,
            "tailLines": _LOG_LINES,
            "limitBytes": _LOG_BYTES,
        }
        try:
            return await self.client.get_text(path, query=query)
        except KubeError as error:
            return f"it cannot be read: {error}"

    async def _jobs_of(self, owner: PlanOwner) -> list[SparkJob]:
        query = {"labelSelector": f"{UID_LABEL}={owner.uid}"}
        listed = await self.client.get(_jobs(owner.namespace), query=query)
        jobs = (read_job(body) for body in listed.get("items", ()))
        return [job for job in jobs if job.is_of(owner)]

    async def _without_label(self, spark: SparkTask) -> list[SparkJob]:
        """The job of this very task that somebody has taken the label off, if there is one.

        Raises:
            KubeError: Something else has its name.
        """
        namespace = spark.owner.namespace
        try:
            found = read_job(await self.client.get(_path(namespace, spark.name)))
        except KubeNotFoundError:
            return []
        if found.is_of(spark.owner):
            return [found]
        raise KubeError(
            f"one of this name exists already, and PartitionReassignment {spark.owner.name} does "
            f"not own it: delete it (kubectl -n {namespace} delete sparkapplication {spark.name})"
        )

    async def _delete(self, namespace: str, job: SparkJob) -> None:
        """Delete exactly this job, if it is still there."""
        if job.is_being_deleted:
            return
        try:
            await self.client.delete(_path(namespace, job.name), uid=job.uid, version=None)
        except KubeNotFoundError:
            return
        logger.info("A planner's job was deleted", extra={"job": f"{namespace}/{job.name}"})

    async def _remove(self, namespace: str, job: SparkJob) -> None:
        """Delete it and wait until it is gone: another one may need its name.

        Raises:
            KubeError: It is still there after a while, held by somebody's finalizer for instance.
        """
        await self._delete(namespace, job)
        until = asyncio.get_running_loop().time() + _GONE_WITHIN_S
        while True:
            try:
                seen = read_job(await self.client.get(_path(namespace, job.name)))
            except KubeNotFoundError:
                return
            if seen.uid != job.uid:
                return
            if asyncio.get_running_loop().time() >= until:
                raise KubeError(
                    f"it was deleted {_GONE_WITHIN_S:g} s ago and is still there: look at its "
                    "finalizers"
                )
            await asyncio.sleep(min(self.look_every_s, 0.5))


_WITHOUT_PLAN: Final = {
    JobEnd.COMPLETED: "it has ended without handing in a plan",
    JobEnd.FAILED: "it has failed",
}


def _jobs(namespace: str) -> str:
    return f"/apis/{API_VERSION}/namespaces/{namespace}/sparkapplications"


def _secrets(namespace: str) -> str:
    return f"/api/v1/namespaces/{namespace}/secrets"


def _path(namespace: str, name: str) -> str:
    return f"{_jobs(namespace)}/{name}"


def _refused(spark: SparkTask, error: KubeError) -> PlannerFailed:
    advice = ""
    if isinstance(error, KubeApiError) and error.status == HTTPStatus.FORBIDDEN:
        if _DEFINITION_ENDS in str(error):
            advice = "; the Spark Operator's definitions are being deleted: install it again"
        elif _RIGHT_MISSING.search(str(error)):
            advice = "; the chart grants the right with planner.spark.enabled"
    return PlannerFailed(f"SparkApplication {spark.name}: {error}{advice}")

"""How a job hands in its plan: what :mod:`regent.kube.spark_runner` needs of the exchange."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import NamedTuple, Protocol

from regent.kube.plan_runner import PlanTask


class PlannerAnswer(NamedTuple):
    """What a planner has handed in.

    Attributes:
        status: Exit status of ``regent plan``.
        body: Its standard output if there is a plan, else its standard error.
    """

    status: int
    body: bytes


class Offer(Protocol):
    """A task that a driver can fetch, and answer once."""

    @property
    def answer(self) -> PlannerAnswer | None:
        """What was handed in; None: nothing yet."""
        ...

    async def wait(self, timeout_s: float) -> PlannerAnswer | None:
        """The answer; None if none has come within some seconds."""
        ...


class PlanExchangePort(Protocol):
    """Where drivers fetch tasks and hand in answers."""

    @property
    def url(self) -> str:
        """Under which drivers reach it."""
        ...

    @property
    def authorities(self) -> str | None:
        """Certificates (PEM) by which drivers know it; None: those of their systems, or no TLS."""
        ...

    def offer(self, task: PlanTask, *, token_sha256: str) -> AbstractContextManager[Offer]:
        """Offer a task to whoever has the token, as long as the context lasts."""
        ...

"""What is known about a resource of any kind when it is reconciled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Generic, Protocol, TypeVar

from regent.admin.commands import Outcome, ResourceCommand
from regent.controller.view import ClusterView
from regent.model.active_regent import ActiveRegent
from regent.model.cluster import Broker
from regent.resources.base import ObjectMeta
from regent.resources.conditions import Condition


class ObservedStatus(Protocol):
    """What the statuses of all kinds have."""

    @property
    def observed_generation(self) -> int | None: ...

    @property
    def conditions(self) -> Sequence[Condition]: ...


class Resource(Protocol):
    """What resources of all kinds have, also those that cannot be read."""

    @property
    def metadata(self) -> ObjectMeta: ...

    @property
    def status(self) -> ObservedStatus: ...


ResourceT = TypeVar("ResourceT", bound=Resource)


@dataclass(frozen=True, slots=True)
class Attempt:
    """A command that was sent for a resource, with its outcome.

    It keeps the same command from being sent again at once: an accepted one needs a moment to show
    in the view, a refused one will be refused again.

    Attributes:
        generation: metadata.generation of the resource; a change of the resource is worth a try.
        controller_epoch: Epoch of the view; so is another controller.
        brokers: Live brokers of the view. What the controller refuses for good depends on their
            racks and versions; so for a refusal another set of brokers is worth a try, too.
        twins: Where it was refused because of the topic's name: the topics of the view that have
            such a name. With others, or none, it is worth a try.
        retry_at: Monotonic seconds at which the command may be sent again.
        count: How often it was sent in a row.
    """

    command: ResourceCommand
    outcome: Outcome
    generation: int
    controller_epoch: int
    brokers: Mapping[int, Broker]
    retry_at: float
    count: int = 1
    twins: tuple[str, ...] = ()


INACTIVE_GRACE_S: Final = 30.0
"""How long a change of a resource may wait for a controller before its status says that there is
none. A change of controllers takes less."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Absence:
    """That this process is not the controller, or has not read the cluster yet, for how long, and
    why.

    Attributes:
        for_s: Seconds since it last was and had, since it began to serve, or since another Regent
            became the controller or ceased to be.
        unknown_after_s: After so many seconds what statuses say of the cluster is out of date.
        reason: Why, as far as it is known.
        regent: Another Regent that is the controller, as far as known.
        lease: ``namespace/name`` of the Lease by which this process serves.
        is_looked_after: Whether the resource is to be left to that one:
            :func:`regent.reconcile.other_regent.looks_after`.
    """

    for_s: float = 0.0
    unknown_after_s: float = 120.0
    reason: str | None = None
    regent: ActiveRegent | None = None
    lease: str | None = None
    is_looked_after: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceRequest(Generic[ResourceT]):
    """What every reconciliation starts from; each kind adds what it needs.

    Attributes:
        attempts: Commands sent for this resource that did not show in the view yet.
        seen_at: Monotonic seconds at which this process first saw this generation of the resource.
        monotonic_s: The present in monotonic seconds, for durations: the wall clock may be set.
        now: The present, aware, for what is shown.
        absence: Of the controller; of interest while nobody may act here, or the cluster is read.
    """

    resource: ResourceT
    view: ClusterView
    seen_at: float
    monotonic_s: float
    now: datetime
    attempts: tuple[Attempt, ...] = ()
    absence: Absence = Absence()

    @property
    def is_answered(self) -> bool:
        """Whether some process has already reacted to this generation of the resource."""
        return self.resource.status.observed_generation == self.resource.metadata.generation

    @property
    def unanswered_s(self) -> float:
        """Seconds since this process first saw this generation."""
        return self.monotonic_s - self.seen_at

    @property
    def waited_s(self) -> float:
        """While nobody may act here: seconds for which this generation has waited for whoever is
        the controller now. After a change of controllers it waits anew."""
        return min(self.unanswered_s, self.absence.for_s)

    @property
    def grace_s(self) -> float:
        """How long a change of the resource waits for a controller."""
        return min(INACTIVE_GRACE_S, self.absence.unknown_after_s)

    @property
    def until_unknown_s(self) -> float:
        """While nobody may act here, or the cluster is read: seconds until the status has to say
        so."""
        if self.is_answered:
            return self.absence.unknown_after_s - self.absence.for_s
        return self.grace_s - self.waited_s

"""How the Kubernetes side of the process is doing: for probes, metrics and ``/status``.

Written in the main loop, read in any thread: every attribute is replaced as a whole.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Mapping
from typing import Final

logger = logging.getLogger(__name__)

STABLE_AFTER_S: Final = 60.0
"""A Kubernetes side that was restarted counts as healthy again after this time without a defect."""


class KindHealth:
    """What cannot be done with the resources of one kind.

    Attributes:
        unlisted: Why none can be listed now: there is no CustomResourceDefinition, the API server
            does not answer. None: they can.
        unreadable: Namespaces that cannot be served now, each with what is missing.
        unwritable: Namespaces in which finalizers or statuses cannot be written now, or single
            resources not be read, each with what is missing.
        outdated: Which fields the API server drops, for its definition is too old. None: it drops
            none, as far as is known.
    """

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.unlisted: str | None = None
        self.unreadable: Mapping[str, str] = {}
        self.unwritable: Mapping[str, str] = {}
        self.outdated: str | None = None

    def dropping(self, problem: str | None) -> None:
        """The API server drops fields; None: not as far as is known."""
        if problem is not None and problem != self.outdated:
            logger.warning(
                "The API server drops fields of resources",
                extra={"kind": self.kind, "problem": problem},
            )
        self.outdated = problem

    def not_listed(self, problem: str) -> None:
        """An attempt to list them has failed. To be logged by the caller."""
        self.unlisted = problem

    def listed(self, *, unreadable: Mapping[str, str], unwritable: Mapping[str, str]) -> None:
        """Namespaces were listed; these lack a right, each with what is missing."""
        before, now = {**self.unreadable, **self.unwritable}, {**unreadable, **unwritable}
        for namespace, missing in now.items():
            if before.get(namespace) != missing:
                logger.warning(
                    "A namespace cannot be served"
                    if namespace in unreadable
                    else "A right is missing in a namespace",
                    extra={"namespace": namespace, "kind": self.kind, "problem": missing},
                )
        for namespace in before.keys() - now.keys():
            logger.info(
                "A namespace can be served again",
                extra={"namespace": namespace, "kind": self.kind},
            )
        self.unlisted, self.unreadable, self.unwritable = None, unreadable, unwritable


class KubeHealth:
    """One for the life of the process.

    Attributes:
        restarts: How often a defect restarted the Kubernetes side.
        kinds: What cannot be done, by kind.
        shared_lease: Who has the same Lease, and what to do; None: no other Regent has it.
        unkept_lease: Why the Lease cannot be kept, and what that means; None: it can.
        left_to: Why resources are left to a replica that controls another Kafka cluster, and what
            to do; None: they are not.
    """

    def __init__(self) -> None:
        self.restarts = 0
        self.kinds: Mapping[str, KindHealth] = {}
        self.shared_lease: str | None = None
        self.unkept_lease: str | None = None
        self.left_to: str | None = None
        self._defect: str | None = None
        self._began_at = 0.0

    def of(self, kind: str) -> KindHealth:
        """The health of one kind. To be called in the main loop."""
        if kind not in self.kinds:
            self.kinds = {**self.kinds, kind: KindHealth(kind)}
        return self.kinds[kind]

    @property
    def unlisted(self) -> str | None:
        """Why resources of some kind cannot be listed now; None: they can."""
        return "; ".join(kind.unlisted for kind in self.kinds.values() if kind.unlisted) or None

    @property
    def unreadable(self) -> Mapping[str, str]:
        """Namespaces in which some kind cannot be served now, each with what is missing."""
        return _joined(kind.unreadable for kind in self.kinds.values())

    @property
    def unwritable(self) -> Mapping[str, str]:
        """Namespaces in which finalizers or statuses of some kind cannot be written now, or single
        resources not be read."""
        return _joined(kind.unwritable for kind in self.kinds.values())

    def shares_lease(self, problem: str | None) -> None:
        """Another Regent has the same Lease; None: none has, as far as is known."""
        if problem is not None and problem != self.shared_lease:
            logger.warning("The Lease is that of another Regent, too", extra={"problem": problem})
        self.shared_lease = problem

    def keeps_lease(self, problem: str | None) -> None:
        """Why the Lease cannot be kept; None: it can. To be logged by the caller."""
        self.unkept_lease = problem and (
            "the Lease cannot be kept, so statuses stay as they are while there is no controller: "
            f"{problem}"
        )

    def leaves_resources_to(self, problem: str | None) -> None:
        """A replica that controls another Kafka cluster has the Lease; None: none has, as far as is
        known."""
        if problem is not None and problem != self.left_to:
            logger.error(
                "Custom resources are left to a replica that controls another Kafka cluster",
                extra={"problem": problem},
            )
        self.left_to = problem

    def failed(self, error: BaseException) -> None:
        """A defect has ended the Kubernetes side."""
        self.restarts += 1
        self._defect = f"{type(error).__name__}: {error}"
        self._began_at = float("inf")

    def began(self) -> None:
        """The Kubernetes side starts."""
        self._began_at = time.monotonic()

    def ended(self) -> None:
        """The Kubernetes side has ended: another replica serves, and finds out what it lacks."""
        self.kinds = {}

    def problem(self) -> str | None:
        """Why custom resources are not served, or None.

        Namespaces that lack a right are not among it: one of them must not take a process out of
        service that serves all others. Nor is a missing CustomResourceDefinition, or an API server
        that does not answer: the process is the Kafka controller all the same, and another one
        would be no better off. See :meth:`remark`.
        """
        if self._defect is None or time.monotonic() - self._began_at > STABLE_AFTER_S:
            return None
        return f"the Kubernetes side was restarted after a defect: {self._defect}"

    def remark(self) -> str | None:
        """What somebody has to correct although the process is in service, or None."""
        said = (self.shared_lease, self.unkept_lease, self.left_to, self.unlisted)
        whole = (each for each in said if each is not None)
        outdated = (kind.outdated for kind in self.kinds.values() if kind.outdated)
        return (
            "; ".join((*whole, *outdated, *self.unreadable.values(), *self.unwritable.values()))
            or None
        )

    def status(self) -> dict[str, object]:
        """For ``/status``."""
        return {
            "problem": self.problem(),
            "unlisted": self.unlisted,
            "unkeptLease": self.unkept_lease,
            "unreadableNamespaces": dict(self.unreadable),
            "unwritableNamespaces": dict(self.unwritable),
        }


def _joined(lacks: Iterable[Mapping[str, str]]) -> dict[str, str]:
    """What is missing by namespace, of all kinds."""
    joined: dict[str, str] = {}
    for lack in lacks:
        for namespace, missing in lack.items():
            before = joined.get(namespace)
            joined[namespace] = missing if before is None else f"{before}; {missing}"
    return joined

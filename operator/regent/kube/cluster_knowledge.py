"""Since when the Kafka cluster has not been known to who serves its resources, whoever that was.

Replicas follow each other, and processes end and start again. If each of them counted from its own
beginning, none might ever say that what statuses show is out of date: where all fail to lead, one
after the other, or end before they do. So the holder of the Lease writes down how long it has been,
and the next one goes on from there.
"""

from __future__ import annotations

import asyncio

from regent.controller.view import ClusterView
from regent.runtime.ports import ControllerPort


class ClusterKnowledge:
    """One for the life of the process. To be used in one loop.

    Attributes:
        known_at: Loop time at which this process last knew the cluster, or a former holder of the
            Lease, as far as this one knows; None: neither has.
    """

    def __init__(self, controller: ControllerPort) -> None:
        self._controller = controller
        self._was_known = False
        self._began_at: float | None = None
        self.known_at: float | None = None

    @property
    def cluster_id(self) -> str | None:
        """Id of the Kafka cluster that commands of this process are for now; None: of none."""
        view = self._controller.view
        return view.cluster_id if view.may_act else None

    def look(self) -> None:
        """Look whether the cluster is known. To be called with every new view."""
        was_known, self._was_known = self._was_known, _knows(self._controller.view)
        if was_known or self._was_known:
            self.known_at = _now()

    def unknown_for_s(self) -> float:
        """Seconds since the cluster was known; since the first question if it never was."""
        self.look()
        now = _now()
        if self._began_at is None:
            self._began_at = now
        return now - (self._began_at if self.known_at is None else self.known_at)

    def inherit(self, unknown_for_s: float) -> None:
        """Go on from what the former holder of the Lease has written down."""
        then = _now() - unknown_for_s
        self.known_at = then if self.known_at is None else max(then, self.known_at)


def _knows(view: ClusterView) -> bool:
    """Whether this process may act, and has read the cluster."""
    return view.may_act and view.is_complete


def _now() -> float:
    return asyncio.get_running_loop().time()

"""For how long, and why, this process is not the controller, and who is instead."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from regent.kube.cluster_knowledge import ClusterKnowledge
from regent.kube.settings import KubeSettings
from regent.model.active_regent import ActiveRegent
from regent.reconcile.other_regent import looks_after
from regent.reconcile.request import Absence
from regent.runtime.ports import ControllerPort


class Absences:
    """Counts from when the cluster was last known to who serves its resources, or a Regent with
    another Lease became the controller or ceased to be: whoever takes over has the time to answer.
    A replica with the same Lease only goes on: it would serve here itself. Belongs to the loop that
    it is made in.

    Args:
        why_inactive: Returns why this process is not the controller, for people.
        knowledge: Since when nobody has known the cluster; default: one that begins now.
    """

    def __init__(
        self,
        controller: ControllerPort,
        settings: KubeSettings,
        knowledge: ClusterKnowledge | None = None,
        *,
        why_inactive: Callable[[], str | None],
    ) -> None:
        self._controller = controller
        self._settings = settings
        self._why_inactive = why_inactive
        self._knowledge = knowledge = knowledge or ClusterKnowledge(controller)
        self._lease = settings.lease
        self._loop = asyncio.get_running_loop()
        known_at = knowledge.known_at
        self._since = self._loop.time() if known_at is None else known_at
        self._elsewhere = self._led_elsewhere()

    def look(self) -> None:
        """Look who is the controller now. To be called with every new view."""
        self._knowledge.look()
        before, self._elsewhere = self._elsewhere, self._led_elsewhere()
        if self._elsewhere != before:
            self._since = self._loop.time()
        if self._knowledge.known_at is not None:
            self._since = max(self._since, self._knowledge.known_at)

    def of(self, body: Mapping[str, Any]) -> Absence:
        """The absence as it concerns an object of the API."""
        self.look()  # the news of a view may still be on its way
        view = self._controller.view
        return Absence(
            for_s=self._loop.time() - self._since,
            unknown_after_s=self._settings.unknown_after_s,
            reason=self._why_inactive(),
            regent=view.active_regent,
            lease=self._lease,
            is_looked_after=looks_after(
                view.active_regent, body, lease=self._lease, can_serve=view.may_act
            ),
        )

    def _led_elsewhere(self) -> ActiveRegent | None:
        """The controller, if it is a Regent that does not say that it has the same Lease."""
        regent = self._controller.view.active_regent
        served = None if regent is None else regent.resources
        return None if served is not None and served.lease == self._lease else regent

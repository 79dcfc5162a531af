"""For how long, and why, this process is not the controller, and who is instead."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from regent.controller.view import ClusterView
from regent.kube.settings import KubeSettings
from regent.reconcile.other_regent import looks_after
from regent.reconcile.request import Absence
from regent.runtime.ports import ControllerPort


class Absences:
    """Counts from when this process was last the controller and knew the cluster, or another Regent
    became it or ceased to be: whoever takes over has the time to answer. Belongs to the loop that
    it is made in.

    Args:
        why_inactive: Returns why this process is not the controller, for people.
    """

    def __init__(
        self,
        controller: ControllerPort,
        settings: KubeSettings,
        *,
        why_inactive: Callable[[], str | None],
    ) -> None:
        self._controller = controller
        self._settings = settings
        self._why_inactive = why_inactive
        self._lease = settings.lease
        self._loop = asyncio.get_running_loop()
        self._since = self._loop.time()
        self._view = controller.view

    def look(self) -> None:
        """Look who is the controller now. To be called with every new view."""
        before, self._view = self._view, self._controller.view
        has_changed = self._view.active_regent != before.active_regent
        if has_changed or _knows(before) or _knows(self._view):
            self._since = self._loop.time()

    def of(self, body: Mapping[str, Any]) -> Absence:
        """The absence as it concerns an object of the API."""
        self.look()  # the news of a view may still be on its way
        return Absence(
            for_s=self._loop.time() - self._since,
            unknown_after_s=self._settings.unknown_after_s,
            reason=self._why_inactive(),
            regent=self._view.active_regent,
            lease=self._lease,
            is_looked_after=looks_after(
                self._view.active_regent, body, lease=self._lease, can_serve=self._view.may_act
            ),
        )


def _knows(view: ClusterView) -> bool:
    """Whether this process is the controller and has read the cluster."""
    return view.may_act and view.is_complete

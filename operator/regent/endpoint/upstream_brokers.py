"""The brokers to which requests can be passed on, out of the controller's view."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from regent.controller.view import ClusterView
from regent.protocol.serving import UpstreamBroker


class UpstreamBrokers:
    """The live brokers that have said which versions they understand; none of a standby.

    Args:
        view: The newest view.
    """

    def __init__(self, view: Callable[[], ClusterView]) -> None:
        self._view = view
        self._made: tuple[ClusterView | None, Sequence[UpstreamBroker]] = (None, ())

    def __call__(self) -> Sequence[UpstreamBroker]:
        """As of now; made once for each view, as every request asks. May be called from any
        thread."""
        view = self._view()
        seen, brokers = self._made
        if view is not seen:
            brokers = _brokers_of(view)
            self._made = view, brokers
        return brokers


def _brokers_of(view: ClusterView) -> Sequence[UpstreamBroker]:
    return [
        UpstreamBroker(
            broker, facts.api_versions, is_stopping=broker.broker_id in view.shutting_down
        )
        for facts in view.broker_facts
        if facts.api_versions and (broker := view.brokers.get(facts.broker_id)) is not None
    ]

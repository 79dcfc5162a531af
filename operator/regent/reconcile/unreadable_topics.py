"""Topics whose nodes in ZooKeeper cannot be read, in words.

They exist. What they have is not known, so nothing is concluded from what the view lacks.
"""

from __future__ import annotations

from typing import Final

from regent.controller.view import ClusterView
from regent.resources.conditions import enumerate_some

_NAMED: Final = 3


def problem_of(view: ClusterView, topic: str) -> str | None:
    """Why a topic is not, or not wholly, in the view; None: it is, or there is none."""
    reason = view.unreadable_topics.get(topic)
    return None if reason is None else f"the node of topic {topic} cannot be read: {reason}"


def problem_in(view: ClusterView) -> str | None:
    """The topics that are not, or not wholly, in the view; None: all are."""
    if not view.unreadable_topics:
        return None
    named = enumerate_some(sorted(view.unreadable_topics), limit=_NAMED)
    return f"the nodes of topics cannot be read: {named}"

"""What is known about the explicit configuration of topics.

The cluster view does not carry configurations: they are read in bulk when a resource needs them and
kept until the controller says that they have changed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from regent.admin.commands import AlterTopicConfig
from regent.controller.view import ClusterView


class ConfigVersion(NamedTuple):
    """Which configuration a topic has: within a term, the same version means the same.

    Attributes:
        czxid: Transaction that created the topic's node.
        changes: How often the configuration has been changed since, as far as that was seen.
    """

    czxid: int
    changes: int


def config_version(view: ClusterView, topic: str) -> ConfigVersion | None:
    """Which configuration a topic has; None: nobody knows. Where a broker is the controller, no
    changes are counted."""
    known = view.topics.get(topic)
    if known is None or not known.czxid or view.is_client:
        return None
    return ConfigVersion(known.czxid, known.config_changes)


class TopicConfigs:
    """Configurations by topic. A reading that was overtaken by an invalidation is not kept."""

    def __init__(self) -> None:
        self._known: dict[str, Mapping[str, str]] = {}
        self._clock = 0
        self._invalidated_at: dict[str, int] = {}
        self._all_invalidated_at = 0
        self._versions: dict[str, ConfigVersion] = {}

    @property
    def clock(self) -> int:
        """A mark to be taken before a reading begins."""
        return self._clock

    def get(self, topic: str) -> Mapping[str, str] | None:
        """Explicit configuration of a topic, None if it is not known."""
        return self._known.get(topic)

    def get_as_of(self, view: ClusterView, topic: str) -> Mapping[str, str] | None:
        """As :meth:`get`, for the configuration that the topic has in this view.

        A view is there before its news. What is learnt for a topic that was looked up by this is
        kept when the news come.
        """
        version = config_version(view, topic)
        if version is not None:
            self.see(topic, version)
        return self._known.get(topic)

    def put(self, topic: str, config: Mapping[str, str], *, as_of: int) -> None:
        """Keep a reading that began at mark ``as_of``, unless the topic changed since."""
        if max(self._invalidated_at.get(topic, 0), self._all_invalidated_at) <= as_of:
            self._known[topic] = dict(config)

    def apply(self, command: AlterTopicConfig) -> None:
        """Take in a change that the controller has made."""
        known = self._known.get(command.topic)
        if known is not None:
            kept = {key: value for key, value in known.items() if key not in command.remove}
            self._known[command.topic] = {**kept, **command.set}

    def see(self, topic: str, version: ConfigVersion | None) -> None:
        """Something about a topic has changed.

        Args:
            version: Which configuration it has now; None: nobody knows.
        """
        if version is not None and version == self._versions.get(topic):
            return
        self.invalidate(topic)
        if version is None:
            self._versions.pop(topic, None)
        else:
            self._versions[topic] = version

    def invalidate(self, topic: str) -> None:
        """The configuration of a topic may have changed."""
        self._clock += 1
        self._invalidated_at[topic] = self._clock
        self._known.pop(topic, None)

    def invalidate_all(self) -> None:
        """Everything may have changed."""
        self._clock += 1
        self._all_invalidated_at = self._clock
        self._invalidated_at.clear()
        self._known.clear()
        self._versions.clear()

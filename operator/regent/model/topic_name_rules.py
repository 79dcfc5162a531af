"""Which namespace may declare which topics."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Final, Self

_NAMESPACE: Final = "{namespace}"
_NAMESPACE_PATTERN: Final = re.compile(r"[-a-z0-9*]+")
_TOPIC_PATTERN: Final = re.compile(r"[a-zA-Z0-9._*-]+")


@dataclass(frozen=True, slots=True)
class TopicNameRule:
    """Allows the topics that match one pattern to the namespaces that match another.

    In both, ``*`` stands for any characters. ``{namespace}`` in the pattern of the topics stands
    for the namespace.
    """

    namespaces: str
    topics: str

    @classmethod
    def parse(cls, text: str) -> Self:
        """From ``NAMESPACES=TOPICS``.

        Raises:
            ValueError: If it is something else.
        """
        namespaces, separator, topics = (part.strip() for part in text.partition("="))
        if not separator or not _NAMESPACE_PATTERN.fullmatch(namespaces):
            raise ValueError(
                f"{text!r} is no rule: write NAMESPACES=TOPICS, for instance team-a=team-a.*"
            )
        if not _TOPIC_PATTERN.fullmatch(topics.replace(_NAMESPACE, "n")):
            raise ValueError(
                f"{text!r} is no rule: a pattern of topics has letters, digits, '.', '_', '-', '*' "
                f"and {_NAMESPACE}"
            )
        return cls(namespaces, topics)

    def concerns(self, namespace: str) -> bool:
        """Whether it is about a namespace."""
        return fnmatchcase(namespace, self.namespaces)

    def allows(self, namespace: str, topic: str) -> bool:
        """Whether it allows a topic to a namespace."""
        pattern = self.topics.replace(_NAMESPACE, namespace)
        return self.concerns(namespace) and fnmatchcase(topic, pattern)

    def __str__(self) -> str:
        return f"{self.namespaces}={self.topics}"


@dataclass(frozen=True, slots=True)
class TopicNameRules:
    """All rules. Without any, every namespace may declare every topic; with rules, only what one of
    them allows."""

    rules: tuple[TopicNameRule, ...] = ()

    @classmethod
    def parse(cls, texts: Iterable[str]) -> Self:
        """From rules as :meth:`TopicNameRule.parse` reads them.

        Raises:
            ValueError: As that.
        """
        return cls(tuple(map(TopicNameRule.parse, texts)))

    def allow(self, namespace: str, topic: str) -> bool:
        """Whether a namespace may declare a topic."""
        return not self.rules or any(rule.allows(namespace, topic) for rule in self.rules)

    def of(self, namespace: str) -> tuple[TopicNameRule, ...]:
        """The rules about a namespace."""
        return tuple(rule for rule in self.rules if rule.concerns(namespace))

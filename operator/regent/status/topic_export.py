"""``regent export topics``: resources for the topics that exist, read from ZooKeeper."""

from __future__ import annotations

import asyncio
import math
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Final

import yaml

from regent.model.errors import MalformedZNodeError
from regent.model.partition import ReplicaAssignment
from regent.model.topic import is_internal_topic, topic_name_problem
from regent.reconcile.topics.exporting import ExportedTopic, export_topic
from regent.status.reader import ClusterReader, open_cluster
from regent.zk_data import paths
from regent.zk_data.config import decode_entity_config
from regent.zk_data.operations import ZNode
from regent.zk_data.topics import decode_topic
from regent.zookeeper.settings import ZooKeeperSettings

UNMATCHED_PATTERN = 7
"""Exit status: nothing is exported by one of the patterns."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportOptions:
    """Which topics, and how.

    Attributes:
        patterns: Topics that match one of them, as a shell matches file names; none: all.
        with_internal: Whether topics whose names begin with ``__`` are among them.
        namespace: Of the resources; None: they name none.
        cluster_name: What ``clusterRef`` says; None: nothing.
    """

    patterns: Sequence[str] = ()
    with_internal: bool = False
    namespace: str | None = None
    cluster_name: str | None = None

    def covers(self, topic: str) -> bool:
        return self._admits(topic) and (
            not self.patterns or any(fnmatchcase(topic, each) for each in self.patterns)
        )

    def unmatched(self, topics: Collection[str], deleted: Collection[str]) -> Iterator[str]:
        """Patterns by which none of these topics is exported, each with the reason."""
        for pattern in self.patterns:
            matching = [topic for topic in topics if fnmatchcase(topic, pattern)]
            if not matching:
                yield f"no topic matches {pattern!r}"
            elif not any(map(self._admits, matching)):
                yield f"only internal topics match {pattern!r}; include them with --internal"
            elif all(topic in deleted for topic in matching if self._admits(topic)):
                yield f"only topics that are being deleted match {pattern!r}"

    def _admits(self, topic: str) -> bool:
        return self.with_internal or not is_internal_topic(topic)


@dataclass(frozen=True, slots=True)
class Export:
    """What was found.

    Attributes:
        topics: By name, sorted.
        problems: Topics that could not be exported, each with the reason.
        unmatched: Patterns by which nothing is exported, each with the reason.
    """

    topics: Mapping[str, ExportedTopic]
    problems: tuple[str, ...]
    unmatched: tuple[str, ...]


def export_topics(settings: ZooKeeperSettings, options: ExportOptions) -> Export:
    """Read the topics and make their resources.

    Raises:
        ConfigurationError: The chroot does not exist, or hardly anything below it may be read.
        MalformedZNodeError: The topics may not be listed.
        ZooKeeperUnavailableError: No server answered.
    """
    return asyncio.run(_export(settings, options))


async def _export(settings: ZooKeeperSettings, options: ExportOptions) -> Export:
    async with open_cluster(settings) as reader:
        return await read_topics(reader, options)


async def read_topics(reader: ClusterReader, options: ExportOptions) -> Export:
    """As :func:`export_topics`. Topics that are being deleted are left out."""
    deleted = frozenset(await reader.children(paths.DELETE_TOPICS) or ())
    children = await reader.children(paths.BROKER_TOPICS) or ()
    names = sorted(name for name in children if options.covers(name) and name not in deleted)
    nodes = await reader.get_data([paths.topic(name) for name in names])
    configs = await reader.get_data([paths.topic_config(name) for name in names])
    topics: dict[str, ExportedTopic] = {}
    problems: list[str] = []
    for name, node, config in zip(names, nodes, configs, strict=True):
        if node is None:
            continue  # it has gone meanwhile
        try:
            topics[name] = export_topic(
                name,
                _assignments(name, node),
                {} if config is None else _config(name, config),
                namespace=options.namespace,
                cluster_name=options.cluster_name,
            )
        except MalformedZNodeError as error:
            problems.append(f"topic {name}: {error}")
    return Export(topics, tuple(problems), tuple(options.unmatched(children, deleted)))


def _assignments(topic: str, node: ZNode) -> Mapping[int, ReplicaAssignment]:
    problem = topic_name_problem(topic)
    path = paths.topic(topic)
    if problem is not None:
        raise MalformedZNodeError(path, problem)
    znode = decode_topic(topic, node.data)
    for partition, why in znode.problems.items():
        raise MalformedZNodeError(path, f"partition {partition}: {why}")
    if not znode.assignments:
        raise MalformedZNodeError(path, "it has no partitions")
    return znode.assignments


def _config(topic: str, node: ZNode) -> dict[str, str]:
    return decode_entity_config(paths.topic_config(topic), node.data)


_PLAIN: Final = re.compile(r"[A-Za-z][A-Za-z0-9_./-]*")
_YAML_1_1_WORDS: Final = frozenset({"y", "yes", "on", "true", "n", "no", "off", "false", "null"})
_UNPRINTABLE: Final = re.compile(r"[^ -~]")


class _Dumper(yaml.SafeDumper):
    """Quotes each string that some YAML parser takes for another type.

    PyYAML quotes by its own rules. kubectl also reads ``y`` as a boolean, ``1e3`` as a float, and
    ``0o17`` as an integer.
    """


def _represent_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    is_plain = _PLAIN.fullmatch(text) and text.lower() not in _YAML_1_1_WORDS
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=None if is_plain else '"')


_Dumper.add_representer(str, _represent_text)


def render(topic: ExportedTopic) -> str:
    """Return a document of YAML, in ASCII, with a comment for each omission."""
    notes = "".join(f"# Left out: {_comment(each)}\n" for each in topic.left_out)
    return notes + yaml.dump(topic.manifest, Dumper=_Dumper, sort_keys=False, width=math.inf)


def _comment(text: str) -> str:
    """One line without characters that YAML does not allow even in comments."""
    return _UNPRINTABLE.sub(lambda found: ascii(found[0])[1:-1], " ".join(text.split()))


def render_all(topics: Mapping[str, ExportedTopic]) -> str:
    """All of them, for ``kubectl apply -f -``."""
    return "---\n".join(map(render, topics.values()))

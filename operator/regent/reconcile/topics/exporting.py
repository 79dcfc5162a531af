"""KafkaTopics for topics that exist. What they declare is there, so applying them changes nothing.

Whatever a KafkaTopic cannot declare, or Regent would refuse, is left out: what a resource does not
mention it leaves alone.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from regent.model.partition import ReplicaAssignment
from regent.model.topic import MAX_PARTITIONS
from regent.model.topic_config import MIN_INSYNC_REPLICAS, parse_int, unlikely_values
from regent.resources.kafka_topic import KafkaTopic
from regent.resources.kafka_topic_status import MAX_REPLICAS
from regent.resources.kind import API_VERSION
from regent.zk_data.throttles import THROTTLED_REPLICAS

_MAX_NAME_LENGTH: Final = 250
"""Kubernetes allows names of 253 characters. A file with the name also ends in ``.yaml``, and file
systems allow names of 255 bytes."""

_HASH_LENGTH: Final = 8
_LABEL: Final = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN: Final = re.compile(rf"{_LABEL}(\.{_LABEL})*")


@dataclass(frozen=True, slots=True)
class ExportedTopic:
    """A KafkaTopic that declares what a topic is.

    Attributes:
        manifest: As ``kubectl apply`` takes it.
        left_out: What the topic has and the manifest does not say, each with the reason.
    """

    manifest: dict[str, Any]
    left_out: tuple[str, ...] = ()

    @property
    def file_name(self) -> str:
        return f"{self.manifest['metadata']['name']}.yaml"


def export_topic(
    topic: str,
    assignments: Mapping[int, ReplicaAssignment],
    config: Mapping[str, str],
    *,
    namespace: str | None = None,
    cluster_name: str | None = None,
) -> ExportedTopic:
    """The resource for a topic.

    Args:
        assignments: Of all its partitions.
        config: Its explicit configuration.
        namespace: Of the resource; None: the manifest names none.
        cluster_name: What ``clusterRef`` says; None: nothing.
    """
    name, left_out = resource_name(topic), list[str]()
    metadata = {"name": name} | ({} if namespace is None else {"namespace": namespace})
    spec: dict[str, Any] = {} if name == topic else {"topicName": topic}
    if cluster_name is not None:
        spec["clusterRef"] = {"name": cluster_name}
    if len(assignments) <= MAX_PARTITIONS:
        spec["partitions"] = len(assignments)
    else:
        left_out.append(f"partitions: {len(assignments)} are more than a KafkaTopic may declare")
    factors = sorted({len(assigned.target_replicas) for assigned in assignments.values()})
    if factors[-1] > MAX_REPLICAS:
        left_out.append(f"replicas: {factors[-1]} are more than a KafkaTopic may declare")
    elif len(factors) == 1:
        spec["replicas"] = factors[0]
    else:
        shown = " and ".join(map(str, factors))
        left_out.append(f"replicas: partitions have different numbers of them, {shown}")
    declared = _declarable(config, factors[-1], left_out)
    if declared:
        spec["config"] = declared
    manifest = {
        "apiVersion": API_VERSION,
        "kind": KafkaTopic.kind.kind,
        "metadata": metadata,
        "spec": spec,
    }
    return ExportedTopic(manifest, tuple(left_out))


def resource_name(topic: str) -> str:
    """Return the name of the topic if Kubernetes allows the name, otherwise a derived name.

    A derived name ends in a hash of the topic's name. So no two topics share a derived name, and
    the name does not depend on other topics.
    """
    if len(topic) <= _MAX_NAME_LENGTH and _SUBDOMAIN.fullmatch(topic):
        return topic
    digest = hashlib.sha256(topic.encode()).hexdigest()[:_HASH_LENGTH]
    words = re.findall(r"[a-z0-9]+", topic.lower())
    readable = "-".join(words)[: _MAX_NAME_LENGTH - _HASH_LENGTH - 1].rstrip("-")
    return f"{readable}-{digest}" if readable else f"topic-{digest}"


def _declarable(
    config: Mapping[str, str], replication_factor: int, left_out: list[str]
) -> dict[str, str]:
    """The part of the configuration that Regent accepts."""
    declared = {
        key: value for key, value in sorted(config.items()) if key not in THROTTLED_REPLICAS
    }
    left_out += [
        f"config[{key}]: it belongs to whoever moves replicas"
        for key in THROTTLED_REPLICAS
        if key in config
    ]
    min_insync = parse_int(declared.get(MIN_INSYNC_REPLICAS, ""))
    if min_insync is not None and min_insync > replication_factor:
        left_out.append(
            f"config[{MIN_INSYNC_REPLICAS}]: {min_insync} is more than the {replication_factor} "
            "replicas: every write with acks=all fails"
        )
        del declared[MIN_INSYNC_REPLICAS]
    # A value may be impossible only together with another one.
    while problems := [p for p in unlikely_values(declared) if p.key in declared]:
        for problem in problems:
            left_out.append(f"config[{problem.key}]: {problem.message}")
            del declared[problem.key]
    return declared

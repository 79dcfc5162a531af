"""Whether brokers can load a topic's configuration."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from regent.model.topic_config.brokers import BrokerFacts
from regent.model.topic_config.definitions import (
    Definition,
    KafkaVersion,
    version_text,
)
from regent.model.topic_config.index_sizes import index_problems
from regent.model.topic_config.kafka_definitions import DEFINITIONS, KNOWN_VERSIONS
from regent.model.topic_config.problems import ConfigProblem, shown
from regent.model.topic_config.relations import change_problems, relation_problems
from regent.model.topic_config.suggestions import suggestion
from regent.model.topic_config.values import violated_expectation

_NEWEST = KNOWN_VERSIONS[-1]


def config_problems(
    config: Mapping[str, str], brokers: Sequence[BrokerFacts]
) -> tuple[ConfigProblem, ...]:
    """Why some of these brokers would refuse ``config``, one problem for each key at most.

    What is impossible is found even without brokers. Certain problems come first. A value has to be
    legal for each version that a broker may run and for all later ones: an upgrade must not end
    what works today.
    """
    found = {problem.key: problem for problem in impossible_values(config)}
    for broker in _distinct(brokers):
        for problem in _problems_on(broker, config):
            before = found.get(problem.key)
            if before is None or (problem.is_certain and not before.is_certain):
                found[problem.key] = problem
    return tuple(sorted(found.values(), key=lambda problem: not problem.is_certain))


def impossible_values(config: Mapping[str, str]) -> tuple[ConfigProblem, ...]:
    """Problems that ``config`` has whatever the brokers are like."""
    anybody = BrokerFacts(broker_id=-1, versions=(_NEWEST,))
    return tuple(problem for problem in _problems_on(anybody, config) if problem.is_certain)


def unlikely_values(config: Mapping[str, str]) -> tuple[ConfigProblem, ...]:
    """Problems that ``config`` has whatever the brokers are like, or with the sizes of segments and
    indexes that Kafka's defaults give to whatever does not say them."""
    certain = impossible_values(config)
    illegal = {problem.key for problem in certain}
    legal = {key: value for key, value in config.items() if key not in illegal}
    return (*certain, *index_problems(legal, BrokerFacts(broker_id=-1)))


def new_problems(
    before: Mapping[str, str],
    after: Mapping[str, str],
    brokers: Sequence[BrokerFacts],
    *,
    changed: Mapping[str, str],
) -> tuple[ConfigProblem, ...]:
    """Why some of these brokers would refuse a change of a topic's configuration.

    What somebody else has set is not judged, only what is changed and how the rest goes with it.

    Args:
        changed: The keys that are set, with their values in ``after``.
    """
    old = {(problem.key, problem.message) for problem in config_problems(before, brokers)}
    return (
        *change_problems(before, after, brokers),
        *(
            problem
            for problem in config_problems(after, brokers)
            if problem.key in changed or (problem.key, problem.message) not in old
        ),
    )


def _problems_on(broker: BrokerFacts, config: Mapping[str, str]) -> Iterator[ConfigProblem]:
    legal: dict[str, str] = {}
    for key, value in config.items():
        problem = _value_problem(key, value, broker)
        if problem is None:
            legal[key] = value
        else:
            yield problem
    yield from relation_problems(legal, broker)


def _distinct(brokers: Sequence[BrokerFacts]) -> Iterable[BrokerFacts]:
    """One broker of each kind: what one of them says, the others say as well."""
    kinds: dict[object, BrokerFacts] = {}
    for each in brokers:
        settings = None if each.settings is None else tuple(each.settings.items())
        kind = (each.versions, each.protocol_version, settings, each.has_answered)
        kinds.setdefault(kind, each)
    return kinds.values()


def _value_problem(key: str, value: str, broker: BrokerFacts) -> ConfigProblem | None:
    if key not in DEFINITIONS:
        return ConfigProblem(
            key,
            f"{shown(key)} is not a topic configuration of Kafka{suggestion(key)}",
            is_unknown_key=True,
        )
    refused = f"{key!r} cannot be {shown(value)}: it must be "
    expected = _expectation(key, value, _NEWEST)
    if expected is not None:
        return ConfigProblem(key, refused + expected)
    for version in broker.versions:
        if _definition(key, version) is None:
            return _unknown_to(key, version, broker)
    for version in _versions_from(key, broker.versions[0]):
        expected = _expectation(key, value, version)
        if expected is not None:
            return ConfigProblem(
                key, refused + expected + _because_of(broker), is_certain=broker.has_answered
            )
    return None


def _unknown_to(key: str, version: KafkaVersion, broker: BrokerFacts) -> ConfigProblem:
    since = next((s.since for s in DEFINITIONS[key] if s.definition and s.since > version), None)
    message = f"{key!r} does not exist in Kafka {version_text(version)}{_because_of(broker)}"
    if since is not None:
        message += (
            f"; it does since Kafka {version_text(since)}: remove the key or upgrade the brokers "
            "first"
        )
    return ConfigProblem(key, message, is_certain=broker.has_answered, is_unknown_key=True)


def _because_of(broker: BrokerFacts) -> str:
    if not broker.has_answered:
        return f" (broker {broker.broker_id} has not answered yet which version it runs)"
    versions = " or ".join(version_text(version) for version in broker.versions)
    if broker.versions == KNOWN_VERSIONS:
        versions = "of an unknown version"
    return f" (broker {broker.broker_id} runs Kafka {versions})"


def _definition(key: str, version: KafkaVersion) -> Definition | None:
    found = None
    for each in DEFINITIONS[key]:
        if each.since <= version:
            found = each.definition
    return found


def _versions_from(key: str, version: KafkaVersion) -> Iterator[KafkaVersion]:
    """A version, and the later ones that define the key in another way."""
    yield version
    for each in DEFINITIONS[key]:
        if each.since > version:
            yield each.since


def _expectation(key: str, value: str, version: KafkaVersion) -> str | None:
    """What the value had to be in a version; None if it is, or there is no such key."""
    definition = _definition(key, version)
    if definition is None:
        return None
    return violated_expectation(definition, value, version=version)

"""Everything that ``regent why`` explains, and the exit status made of it."""

from __future__ import annotations

import asyncio
import enum
from collections.abc import Iterator, Mapping
from typing import Any

from regent.model.errors import ConfigurationError
from regent.model.plain_text import plain
from regent.status.cluster import read_brokers, read_cluster_id, read_controller
from regent.status.endpoint import EndpointAnswer, ask_why, of_this_cluster, shown_url
from regent.status.reader import ClusterReader, open_cluster
from regent.status.sentences import removed_sentence
from regent.status.story import tell_partition, tell_topic
from regent.status.topic import Target, read_topic, resolve
from regent.zookeeper.settings import ZooKeeperSettings

Report = dict[str, Any]


class ExitStatus(enum.IntEnum):
    """For scripts; what is the same as in ``regent status`` has the same number.

    Further ones say nothing about the topic: 1, a failure; 2, wrong usage; 3, no ZooKeeper.
    """

    EXPLAINED = 0
    NO_CONTROLLER = 4
    OFFLINE_PARTITIONS = 5
    UNREADABLE_ZNODES = 6
    UNKNOWN_TOPIC = 7
    NO_TRAIL = 8


def read_why(settings: ZooKeeperSettings, text: str, partition: int | None, *, url: str) -> Report:
    """The report as it is printed as JSON.

    Args:
        text: A topic, or one of its partitions, unless ``partition`` is given.

    Raises:
        ConfigurationError: The chroot does not exist, or what everything rests on may not be read.
        ZooKeeperUnavailableError: No server answered.
    """
    return asyncio.run(_read_why(settings, text, partition, url=url))


async def _read_why(
    settings: ZooKeeperSettings, text: str, partition: int | None, *, url: str
) -> Report:
    async with open_cluster(settings) as reader:
        problems: list[str] = []
        brokers = await read_brokers(reader, problems)
        if brokers is None:
            raise ConfigurationError(f"{problems[0]}; without it no partition can be explained")
        report: Report = {
            "clusterId": await read_cluster_id(reader, problems),
            "controller": await read_controller(reader, brokers, problems),
            "liveBrokers": [broker["id"] for broker in brokers],
            "problems": problems,
        }
        if partition is None:
            target = await resolve(reader, text)
        else:
            target = Target(text, partition)
        # Regent is asked first: so whatever it knows is in ZooKeeper by then.
        answer = await _ask(target, report, url)
        report["target"] = str(target)
        report["remark"] = target.remark
        report["topic"] = await _topic(reader, target, _trail(answer), problems)
        if report["topic"] is None and target.alternative is not None and _trail(answer) is None:
            answer = await _ask(target.alternative, report, url)
        report["regent"] = _trail(answer)
        report["regentProblem"] = _problem(answer, url)
        return report


async def _ask(target: Target, report: Report, url: str) -> EndpointAnswer:
    answer = await asyncio.to_thread(ask_why, url, target.topic, target.partition)
    return of_this_cluster(answer, report, url=url)


def _trail(answer: EndpointAnswer) -> Mapping[str, Any] | None:
    return None if answer.status is None or answer.status["problem"] else answer.status


async def _topic(
    reader: ClusterReader, target: Target, trail: Mapping[str, Any] | None, problems: list[str]
) -> Report | None:
    known = [] if trail is None else trail["partitions"]
    changed = [p["partition"] for p in known if p["changes"] or p.get("uninformed")]
    return await read_topic(reader, target, changed=changed, problems=problems)


def _problem(answer: EndpointAnswer, url: str) -> str | None:
    if answer.status is None:
        return answer.problem
    problem = answer.status["problem"]
    return None if not problem else f"the Regent at {shown_url(url)} answers: {problem}"


def exit_status(report: Report) -> ExitStatus:
    """What a script has to know first."""
    if report["topic"] is None:
        return ExitStatus.UNKNOWN_TOPIC
    if report["controller"]["kind"] == "none":
        return ExitStatus.NO_CONTROLLER
    if report["topic"]["offline"] and not report["topic"]["isMarkedForDeletion"]:
        return ExitStatus.OFFLINE_PARTITIONS
    if report["problems"]:
        return ExitStatus.UNREADABLE_ZNODES
    return ExitStatus.EXPLAINED if report["regent"] is not None else ExitStatus.NO_TRAIL


def tell(report: Report) -> Iterator[str]:
    """The report as lines for people, with an empty one before each partition."""
    return map(plain, _tell(report))


def _tell(report: Report) -> Iterator[str]:
    topic, regent = report["topic"], report["regent"]
    if report["remark"]:
        yield report["remark"]
    if topic is None:
        yield from _tell_of_what_is_unknown(report)
        return
    if topic["partition"] is None or topic["isMarkedForDeletion"]:
        yield from tell_topic(topic, live=report["liveBrokers"])
    yield from _tell_of_the_controller(report)
    yield from _unreadable(report)
    known = [] if regent is None else regent["partitions"]
    trails = {p["partition"]: p for p in known}
    for found in topic["partitions"]:
        yield ""
        yield from tell_partition(
            found,
            topic=topic,
            live=report["liveBrokers"],
            trail=trails.get(found["partition"]),
            regent=regent,
        )
    if topic["omitted"]:
        yield ""
        yield f"{topic['omitted']} partitions more: ask for one with --partition."


def _tell_of_what_is_unknown(report: Report) -> Iterator[str]:
    yield f"There is no topic or partition {report['target']!r} in ZooKeeper."
    yield from _unreadable(report)
    regent = report["regent"]
    if regent is not None and regent["removed"] is not None:
        yield removed_sentence(regent["topic"], regent["removed"])
    elif regent is None and report["regentProblem"]:
        yield f"Why it is gone is not known: {report['regentProblem']} (see --url)."


def _unreadable(report: Report) -> Iterator[str]:
    return (f"Unreadable: {problem}" for problem in report["problems"])


def _tell_of_the_controller(report: Report) -> Iterator[str]:
    controller = report["controller"]
    if controller["kind"] == "none":
        yield "There is no controller: nothing changes until there is one."
    if report["regent"] is None:
        who = {
            "none": "",
            "unknown": "",
            "broker": f" The controller is broker {controller['id']}'s own, which keeps none.",
            "regent": f" The controller is the Regent with the id {controller['id']}.",
        }[controller["kind"]]
        yield f"No trail of changes: {report['regentProblem']} (see --url).{who}"

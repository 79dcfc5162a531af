"""Everything that ``regent status`` shows, and the exit status made of it."""

from __future__ import annotations

import asyncio
import enum

from regent.status.cluster import Report, deposed_controllers, read_brokers, read_cluster
from regent.status.endpoint import ask_regent, of_this_cluster
from regent.status.reader import open_cluster
from regent.zookeeper.settings import ZooKeeperSettings


class ExitStatus(enum.IntEnum):
    """For scripts. Where several apply, the first of them.

    Further ones say nothing about the cluster: 1, a failure; 2, wrong usage; 3, no ZooKeeper.
    """

    HEALTHY = 0
    NO_CONTROLLER = 4
    OFFLINE_PARTITIONS = 5
    UNREADABLE_ZNODES = 6


def read_status(settings: ZooKeeperSettings, *, url: str) -> Report:
    """The report as it is printed as JSON.

    Raises:
        ConfigurationError: The chroot does not exist, or hardly anything below it may be read.
        ZooKeeperUnavailableError: No server answered.
    """
    report = asyncio.run(_read(settings))
    answer = of_this_cluster(ask_regent(url), report, url=url)
    report["regent"] = answer.status
    report["regentProblem"] = answer.problem
    return report


def read_deposed_controllers(settings: ZooKeeperSettings) -> list[int]:
    """Brokers that are to be restarted before a broker is the controller again.

    Raises:
        ConfigurationError: The chroot does not exist, or hardly anything below it may be read.
        ZooKeeperUnavailableError: No server answered.
    """

    async def read() -> list[int]:
        async with open_cluster(settings) as reader:
            brokers = await read_brokers(reader, [])
            return await deposed_controllers(reader, brokers or [], [])

    return asyncio.run(read())


async def _read(settings: ZooKeeperSettings) -> Report:
    async with open_cluster(settings) as reader:
        return await read_cluster(reader)


def exit_status(report: Report) -> ExitStatus:
    """What a script has to know first."""
    if report["controller"]["kind"] == "none":
        return ExitStatus.NO_CONTROLLER
    if report["partitions"]["offline"]:
        return ExitStatus.OFFLINE_PARTITIONS
    if report["problems"]:
        return ExitStatus.UNREADABLE_ZNODES
    return ExitStatus.HEALTHY

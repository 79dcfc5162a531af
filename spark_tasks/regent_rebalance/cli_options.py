"""Options of ``regent plan`` that are more than a number or a name."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any, TypeVar

import click

_F = TypeVar("_F", bound=Callable[..., Any])

_ID_MAX = 2**31 - 1
_NUMBER_MAX = 2**15 - 1
_BROKER_ID = click.IntRange(max=_ID_MAX)
_AMOUNT_MAX = 2**53
"""As in files: sums stay within 64 bits."""
_AMOUNT = click.IntRange(max=_AMOUNT_MAX)

_UNITS = {"": 1, "B": 1, "kB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}


class ByteCount(click.ParamType[int]):
    """Bytes, as 1000, 1kB or 1.5GB."""

    name = "bytes"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Raises UsageError for what is no number of bytes."""
        if isinstance(value, int):
            return value
        match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(|B|kB|MB|GB|TB)", str(value))
        if match is None:
            self.fail(f"{value!r} is no number of bytes, such as 1000, 1kB or 1.5GB", param, ctx)
        number = int(Decimal(match[1]) * _UNITS[match[2]])
        if number > _AMOUNT_MAX:
            self.fail(f"{value!r} is more than {_AMOUNT_MAX:,} bytes", param, ctx)
        return number


def numbers_of_topics(
    _: click.Context, __: click.Parameter, values: tuple[str, ...]
) -> tuple[tuple[str, int], ...]:
    """Topics, or patterns of their names, and numbers."""
    found = []
    for value in values:
        topic, _equals, number = value.rpartition("=")
        if not topic or len(number) > 5 or not number.isdecimal() or int(number) > _NUMBER_MAX:
            raise click.BadParameter(f"{value!r} is not TOPIC=NUMBER")
        found.append((topic, int(number)))
    return tuple(found)


def added_brokers(
    _: click.Context, __: click.Parameter, values: tuple[str, ...]
) -> dict[int, str | None]:
    """Ids and racks of brokers that are to be added."""
    added: dict[int, str | None] = {}
    for value in values:
        broker, equals, rack = value.partition("=")
        is_id = len(broker) <= 10 and broker.isdecimal() and int(broker) <= _ID_MAX
        if not is_id or (equals and not rack):
            raise click.BadParameter(f"{value!r} is not ID=RACK, or ID for a broker without a rack")
        if int(broker) in added:
            raise click.BadParameter(f"broker {broker} is added twice")
        added[int(broker)] = rack or None
    return added


def goal_options(command: _F) -> _F:
    """What the goals need besides their names."""
    return _with(
        command,
        click.option("--replica-balance", type=float, default=1.10, show_default=True,
                     help="Threshold."),
        click.option("--leader-balance", type=float, default=1.10, show_default=True,
                     help="Threshold."),
        click.option("--resource-balance", type=float, default=1.10, show_default=True,
                     help="Threshold for disks and networks."),
        click.option("--topic-balance", type=float, default=3.0, show_default=True,
                     help="Threshold for the replicas of a topic."),
        click.option("--capacity-threshold", type=float, default=0.8, show_default=True,
                     help="Share of disks and networks that may be used."),
        click.option("--bytes-share", type=float, default=0.0, show_default=True,
                     help="What is saved: 0 new replicas, 1 bytes, between them both."),
        click.option("--max-replicas", type=_AMOUNT, help="Replicas that one broker may have."),
        click.option("--drain", multiple=True, type=_BROKER_ID, metavar="ID",
                     help="A broker to be emptied."),
        click.option("--exclude", multiple=True, type=_BROKER_ID, metavar="ID",
                     help="It gets no new replica."),
        click.option("--pin", multiple=True, metavar="TOPIC", help="A topic that stays as it is."),
        click.option("--replication-factor", multiple=True, callback=numbers_of_topics,
                     metavar="TOPIC=NUMBER",
                     help="A new replication factor. TOPIC may be a pattern such as 'orders-*'."),
        click.option("--min-leaders", multiple=True, callback=numbers_of_topics,
                     metavar="TOPIC=NUMBER",
                     help="Partitions of a topic, or of those like a pattern, that each broker is "
                     "to lead (MinTopicLeadersPerBrokerGoal)."),
    )  # fmt: skip


def batch_options(command: _F) -> _F:
    """Limits of a batch."""
    return _with(
        command,
        click.option("--batch-copies", type=_AMOUNT, default=5, show_default=True,
                     help="New replicas that a broker sends, or receives, in one batch."),
        click.option("--batch-bytes", type=ByteCount(),
                     help="Bytes that a broker sends, or receives, in one batch."),
        click.option("--throttle", type=ByteCount(), default="50MB", show_default=True,
                     help="Bytes a second that a broker sends, or receives: the times of batches "
                     "are predicted from it."),
    )  # fmt: skip


def what_if_options(command: _F) -> _F:
    """What is assumed."""
    return _with(
        command,
        click.option("--add-broker", multiple=True, callback=added_brokers, metavar="ID=RACK",
                     help="What if this broker were added? Its disks are as large as the smallest "
                     "of the others."),
        click.option("--lose-rack", multiple=True, metavar="RACK",
                     help="What if all brokers of this rack failed?"),
        click.option("--lose-broker", multiple=True, type=_BROKER_ID, metavar="ID",
                     help="What if this broker failed?"),
    )  # fmt: skip


def _with(command: _F, *options: Callable[[_F], _F]) -> _F:
    """The command with options, which are shown in this order."""
    return functools.reduce(lambda wrapped, option: option(wrapped), reversed(options), command)

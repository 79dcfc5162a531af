"""Entries in lists of throttled replicas and rates of brokers: pure functions of values.

Several tools may throttle at the same time. An entry, or a rate, is ours if we have set it where
there was none. Whatever else stands there is somebody else's: it is neither changed nor removed.

Source: KIP-73, ``kafka.server.TopicConfigHandler.parseThrottledPartitions``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final, NamedTuple

from regent.zk_data.throttles import BrokerThrottle

ALL_REPLICAS: Final = "*"
"""The list that throttles every replica of a topic."""


class MergedList(NamedTuple):
    """A list of throttled replicas.

    Attributes:
        value: The configuration; None: there is none.
        ours: The entries that we have set.
    """

    value: str | None
    ours: tuple[str, ...]


class MergedRate(NamedTuple):
    """A rate of a broker.

    Attributes:
        value: The configuration; None: there is none.
        ours: The rate that we have set; None: none.
    """

    value: str | None
    ours: int | None


def merge_list(value: str | None, *, ours: Collection[str], wanted: Collection[str]) -> MergedList:
    """The list with the entries that are wanted, and without those of ours that are not.

    Args:
        value: The list as it is; None: there is none.
        ours: What we have set in it. Somebody may have removed it meanwhile.
        wanted: Entries ``partition:broker``.
    """
    if value is not None and value.strip() == ALL_REPLICAS:
        return MergedList(value, ())
    entries, was_ours = _entries(value), frozenset(ours)
    present, obsolete = frozenset(entries), was_ours.difference(wanted)
    kept = [entry for entry in entries if entry not in obsolete]
    added = [entry for entry in dict.fromkeys(wanted) if entry not in present]
    is_ours = was_ours.union(added)
    now_ours = tuple(entry for entry in dict.fromkeys(wanted) if entry in is_ours)
    if len(kept) == len(entries) and not added:
        return MergedList(value, now_ours)
    return MergedList(",".join((*kept, *added)) or None, now_ours)


def merge_rate(value: str | None, *, ours: int | None, wanted: int | None) -> MergedRate:
    """The rate that is wanted, unless somebody else has set one: that one stays.

    Args:
        value: The rate as it is; None: there is none.
        ours: What we have set.
        wanted: Bytes a second; None: no rate of ours.
    """
    if value is not None and value != str(ours):
        return MergedRate(value, None)
    return MergedRate(None if wanted is None else str(wanted), wanted)


def rate_in(value: str | None) -> int | None:
    """The rate that a configuration says; None: none that brokers would take."""
    try:
        rate = int(value or "")
    except ValueError:
        return None
    return rate if rate > 0 else None


def lower_rates(wanted: BrokerThrottle, limits: BrokerThrottle) -> BrokerThrottle:
    """The rates that are wanted, none of them above its limit.

    Args:
        limits: Rates for all brokers that have none of their own. Brokers take them from Kafka 3.x
            on; a rate of a broker takes its place, also for what others throttle there.
    """
    return BrokerThrottle(
        _lower(wanted.leader_rate, limits.leader_rate),
        _lower(wanted.follower_rate, limits.follower_rate),
    )


def _lower(wanted: int | None, limit: int | None) -> int | None:
    return wanted if wanted is None or limit is None else min(wanted, limit)


def entries_of(partition: int, brokers: Iterable[int]) -> list[str]:
    """The entries for replicas of a partition."""
    return [f"{partition}:{broker_id}" for broker_id in brokers]


def _entries(value: str | None) -> list[str]:
    """Entries as they stand there, also those that no broker understands."""
    return [entry.strip() for entry in (value or "").split(",") if entry.strip()]

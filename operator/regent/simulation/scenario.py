"""Scenarios: what happens to a cluster, step by step, and the words in which people say it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from regent.model.errors import ConfigurationError

_ID_MAX: Final = 2**31 - 1
_LONGEST_S: Final = 365 * 86_400


class Kill(NamedTuple):
    """Brokers die at the same moment, without a word."""

    brokers: tuple[int, ...]

    def __str__(self) -> str:
        return f"kill {_ids(self.brokers)}"


class KillRack(NamedTuple):
    """All living brokers of a rack die at the same moment."""

    rack: str

    def __str__(self) -> str:
        return f"kill rack {self.rack}"


class Stop(NamedTuple):
    """Brokers are stopped in order (SIGTERM), one after the other."""

    brokers: tuple[int, ...]

    def __str__(self) -> str:
        return f"stop {_ids(self.brokers)}"


class Start(NamedTuple):
    """Dead brokers are started at the same moment, with their disks as they were."""

    brokers: tuple[int, ...]

    def __str__(self) -> str:
        return f"start {_ids(self.brokers)}"


class Restart(NamedTuple):
    """Brokers are stopped in order and started again, one by one: each waits until the one before
    is in all ISRs again."""

    brokers: tuple[int, ...]

    def __str__(self) -> str:
        return f"restart {_ids(self.brokers)}"


class AddBroker(NamedTuple):
    """A broker joins, without replicas."""

    broker: int
    rack: str | None

    def __str__(self) -> str:
        return f"add broker {self.broker}" + ("" if self.rack is None else f" in rack {self.rack}")


class Unclean(NamedTuple):
    """The cluster's default of ``unclean.leader.election.enable`` changes."""

    allowed: bool

    def __str__(self) -> str:
        return f"unclean {'on' if self.allowed else 'off'}"


class Wait(NamedTuple):
    """Time passes."""

    seconds: float

    def __str__(self) -> str:
        return f"wait {self.seconds:g} s"


Step = Kill | KillRack | Stop | Start | Restart | AddBroker | Unclean | Wait


def parse_step(name: str, value: str) -> Step:
    """A step as the command line has it.

    Args:
        name: One of :data:`STEPS`.

    Raises ConfigurationError for a value that the step does not take.
    """
    return STEPS[name](value)


def _broker_ids(value: str) -> tuple[int, ...]:
    words = [word.strip() for word in value.split(",")]
    if not all(_is_number(word, at_most=_ID_MAX) for word in words):
        raise ConfigurationError(f"{value!r} is no list of brokers: give ids, such as 3 or 1,2,3")
    ids = tuple(map(int, words))
    repeated = [i for i in ids if ids.count(i) > 1]
    if repeated:
        raise ConfigurationError(f"{value!r} names broker {repeated[0]} twice: name each once")
    return ids


def _rack(value: str) -> KillRack:
    if not value:
        raise ConfigurationError("'' is no rack: give the name that brokers have as broker.rack")
    return KillRack(value)


def _new_broker(value: str) -> AddBroker:
    broker, equals, rack = value.partition("=")
    if not _is_number(broker, at_most=_ID_MAX) or (equals and not rack):
        raise ConfigurationError(f"{value!r} is not ID=RACK, or ID for a broker without a rack")
    return AddBroker(int(broker), rack or None)


def _switch(value: str) -> Unclean:
    if value not in ("on", "off"):
        raise ConfigurationError(f"{value!r} is neither on nor off")
    return Unclean(value == "on")


def _duration(value: str) -> Wait:
    if not _is_number(value, at_most=_LONGEST_S):
        raise ConfigurationError(
            f"{value!r} is no number of seconds, such as 600, of at most a year"
        )
    return Wait(int(value))


def _is_number(text: str, *, at_most: int) -> bool:
    return len(text) <= len(str(at_most)) and text.isdecimal() and int(text) <= at_most


def _ids(brokers: tuple[int, ...]) -> str:
    return ",".join(map(str, brokers))


STEPS: Final[Mapping[str, Callable[[str], Step]]] = {
    "kill": lambda value: Kill(_broker_ids(value)),
    "kill_rack": _rack,
    "stop": lambda value: Stop(_broker_ids(value)),
    "start": lambda value: Start(_broker_ids(value)),
    "restart": lambda value: Restart(_broker_ids(value)),
    "add_broker": _new_broker,
    "unclean": _switch,
    "wait": _duration,
}
"""What can be a step, by the name of its option."""

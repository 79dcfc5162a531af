"""Why a topic's configuration is refused."""

from __future__ import annotations

from typing import Final, NamedTuple

_SHOWN: Final = 100


class ConfigProblem(NamedTuple):
    """A reason not to write a configuration.

    Attributes:
        key: The key to change.
        message: A sentence that names the key, the value and what to do.
        is_certain: False if it may go away as soon as a broker has reported more about itself.
        is_unknown_key: Whether Kafka, or the version of some broker, does not define the key.
            Brokers ignore such a key in ZooKeeper, whatever its value is.
    """

    key: str
    message: str
    is_certain: bool = True
    is_unknown_key: bool = False


def shown(text: str) -> str:
    """A text of somebody else's in quotes; long ones are cut."""
    return repr(text if len(text) <= _SHOWN else f"{text[:_SHOWN]}...")

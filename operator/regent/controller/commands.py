"""Commands of a controller beside those of topics (:mod:`regent.admin.commands`)."""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence

import msgspec

from regent.admin.commands import (
    Outcome,
    PartitionResult,
    Reason,
    Rejected,
    ResourceCommand,
)
from regent.model.partition import TopicPartition


class ListPartitionReassignments(msgspec.Struct, frozen=True):
    """List the partitions that are being reassigned.

    Attributes:
        partitions: Partitions that are asked for; None: all.
    """

    partitions: tuple[TopicPartition, ...] | None = None


class ControlledShutdown(msgspec.Struct, frozen=True):
    """A broker asks to be relieved of its partitions, since it is about to stop (KIP-40).

    Attributes:
        broker_epoch: Which life of the broker asks (KIP-380): the czxid of its registration; -1 if
            it does not know.
    """

    broker_id: int
    broker_epoch: int


class ControlledShutdownResult(msgspec.Struct, frozen=True):
    """What has become of a :class:`ControlledShutdown`.

    Attributes:
        error_code: Kafka's. STALE_BROKER_EPOCH and BROKER_NOT_AVAILABLE: nothing was done.
        message: Empty unless there is an error.
        remaining_partitions: Partitions with several replicas that the broker still leads, as no
            other in-sync replica stays. They are without a leader when it stops.
    """

    error_code: int = 0
    message: str = ""
    remaining_partitions: tuple[TopicPartition, ...] = ()


class ScramUpsertion(msgspec.Struct, frozen=True):
    """A SCRAM credential that a user gets, or gets instead of the former one (KIP-554).

    Attributes:
        mechanism: Kafka's name, such as ``SCRAM-SHA-256``; None for a number that Kafka does not
            know.
        salted_password: As the client has computed it, with this salt and number of iterations.
    """

    user: str
    mechanism: str | None
    iterations: int
    salt: bytes
    salted_password: bytes

    def __repr__(self) -> str:
        return f"ScramUpsertion({self.user!r}, {self.mechanism!r}, password withheld)"


class ScramDeletion(msgspec.Struct, frozen=True):
    """A SCRAM credential that a user loses.

    Attributes:
        mechanism: As in :class:`ScramUpsertion`.
    """

    user: str
    mechanism: str | None


class AlterUserScramCredentials(msgspec.Struct, frozen=True):
    """Change SCRAM credentials (KIP-554). Each user has a result of its own."""

    upsertions: tuple[ScramUpsertion, ...] = ()
    deletions: tuple[ScramDeletion, ...] = ()


class UpgradeType(enum.IntEnum):
    """What a change of a feature may be. The values are those of KIP-778; others are unknown."""

    UNKNOWN = 0
    UPGRADE = 1
    SAFE_DOWNGRADE = 2
    UNSAFE_DOWNGRADE = 3


class FeatureUpdate(msgspec.Struct, frozen=True):
    """The maximum version level wanted for a finalized feature; below 1 to delete it (KIP-584)."""

    feature: str
    version_level: int
    upgrade_type: UpgradeType


class UpdateFeatures(msgspec.Struct, frozen=True):
    """Change finalized features.

    Attributes:
        validate_only: Check everything, and write nothing.
    """

    updates: tuple[FeatureUpdate, ...]
    validate_only: bool = False


Command = (
    ResourceCommand
    | ListPartitionReassignments
    | ControlledShutdown
    | AlterUserScramCredentials
    | UpdateFeatures
)


EntityResult = PartitionResult
"""The same for what is no partition: a user, a feature."""


class UpdateFeaturesResult(msgspec.Struct, frozen=True):
    """What has become of :class:`UpdateFeatures`.

    Attributes:
        features: The result of each feature.
        error_code: Kafka's, if the command as a whole was refused.
        message: Empty unless it was.
    """

    features: Mapping[str, EntityResult] = {}
    error_code: int = 0
    message: str = ""


def not_controller(commands: Sequence[Command]) -> tuple[Outcome, ...]:
    """The answer of a process that is not, or no longer, the controller."""
    return tuple(
        Rejected(
            Reason.NOT_CONTROLLER,
            "this process is not the Kafka controller at the moment; the command is tried again",
        )
        for _ in commands
    )

"""Where the partitions of a command go: as it says, or by the placement algorithm."""

from __future__ import annotations

from collections.abc import Mapping

from regent.admin.commands import CreateTopic, Reason, Rejected
from regent.admin.replica_assignment import (
    Pattern,
    Placement,
    PlacementError,
    assign_replicas,
)
from regent.admin.topic_admin import TopicAdmin

_REFUSED_FIELDS = {
    "partitions": Reason.INVALID_PARTITIONS,
    "replication_factor": Reason.INVALID_REPLICATION_FACTOR,
}


def place_new_topic(admin: TopicAdmin, command: CreateTopic) -> Placement:
    if command.assignment is not None:
        return given_assignment(
            admin,
            command.assignment,
            range(command.partitions),
            awaits_replicas=command.awaits_replicas,
        )
    factor = command.replication_factor
    if factor is None:
        factor = admin.default_replication_factor
    brokers = admin.brokers_for_new_replicas(replication_factor=factor)
    if not brokers:
        raise PlacementError("no broker is live; start the brokers", awaits_brokers=True)
    start = admin.chance.below(len(brokers))
    return assign_replicas(
        brokers,
        partitions=command.partitions,
        replication_factor=factor,
        pattern=Pattern(start, admin.chance.below(max(1, len(brokers) - 1))),
    )


def given_assignment(
    admin: TopicAdmin,
    assignment: Mapping[int, tuple[int, ...]],
    expected: range,
    *,
    awaits_replicas: bool = False,
) -> Placement:
    if sorted(assignment) != list(expected):
        raise PlacementError(
            f"the assignment names partitions {sorted(assignment)}, needed are "
            f"{expected.start} to {expected.stop - 1}",
            "assignment",
        )
    live = admin.live
    sizes = {len(replicas) for replicas in assignment.values()}
    for partition, replicas in assignment.items():
        if not replicas or len(set(replicas)) != len(replicas):
            raise PlacementError(
                f"partition {partition} is assigned to {list(replicas)}: give at least one broker, "
                "each once",
                "assignment",
            )
        if min(replicas) < 0:
            raise PlacementError(
                f"partition {partition} is assigned to {list(replicas)}: ids of brokers are not "
                "negative",
                "assignment",
            )
        unknown = [] if awaits_replicas else [r for r in replicas if r not in live]
        if unknown:
            raise PlacementError(
                f"partition {partition} is assigned to brokers {unknown} that are not live; "
                f"live are {list(live)}",
                "assignment",
                awaits_brokers=True,
            )
    if len(sizes) > 1:
        raise PlacementError(
            "partitions are assigned to different numbers of replicas; give each the same number",
            "assignment",
        )
    return {partition: tuple(replicas) for partition, replicas in sorted(assignment.items())}


def placement_refused(topic: str, error: PlacementError) -> Rejected:
    if error.awaits_brokers:
        named = error.field == "assignment"
        reason = Reason.BROKERS_UNAVAILABLE if named else Reason.NOT_ENOUGH_BROKERS
    else:
        reason = _REFUSED_FIELDS.get(error.field, Reason.INVALID_REPLICA_ASSIGNMENT)
    return Rejected(reason, f"topic {topic!r}: {error}", error.field)

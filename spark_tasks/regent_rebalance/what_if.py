"""Changes to a snapshot before planning: brokers that are added, brokers and racks that fail."""

from __future__ import annotations

import dataclasses
import fnmatch
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from regent_rebalance.errors import InvalidInputError
from regent_rebalance.ragged import Bools, Ints, ints, owners
from regent_rebalance.snapshot import UNKNOWN, Brokers, Snapshot, listed


@dataclass(frozen=True, slots=True)
class WhatIf:
    """What is assumed.

    Attributes:
        added: New brokers: id and rack, None for no rack. Their disks and networks are as large
            as the smallest known ones.
        lost_racks: Racks whose brokers are all dead.
        lost_brokers: Ids of brokers that are dead.
    """

    added: Mapping[int, str | None]
    lost_racks: tuple[str, ...] = ()
    lost_brokers: tuple[int, ...] = ()


def assume(snapshot: Snapshot, what_if: WhatIf) -> tuple[Snapshot, tuple[str, ...]]:
    """The snapshot as it would be, and a sentence for each assumption.

    Raises InvalidInputError for a broker that is there already, or a rack or broker that is not.
    """
    changed, sentences = snapshot, []
    if what_if.added:
        changed = _with_brokers(changed, what_if.added)
        sentences += [
            f"broker {broker} is added in rack {rack or 'none'}"
            for broker, rack in sorted(what_if.added.items())
        ]
    for rack in sorted(set(what_if.lost_racks)):
        if rack not in changed.brokers.rack_names:
            raise InvalidInputError(
                f"rack to be lost: the snapshot has no rack {rack!r}; it has "
                f"{listed([repr(name) for name in changed.brokers.rack_names])}"
            )
        in_rack = changed.brokers.racks == changed.brokers.rack_names.index(rack)
        changed, effect = _without(changed, in_rack)
        sentences.append(f"rack {rack or 'none'} is lost, {int(in_rack.sum())} brokers: {effect}")
    for broker in sorted(set(what_if.lost_brokers)):
        lost = np.zeros(len(changed.brokers), dtype=np.bool_)
        lost[changed.brokers.positions_of([broker], what="brokers to be lost")] = True
        changed, effect = _without(changed, lost)
        sentences.append(f"broker {broker} is lost: {effect}")
    return changed, tuple(sentences)


def by_topic(
    snapshot: Snapshot, patterns: Iterable[tuple[str, int]], *, what: str
) -> dict[str, int]:
    """Numbers by topic. A pattern has ``*``, ``?`` or ``[``; the last that fits counts.

    Args:
        patterns: Topics, or patterns of their names, with their numbers.
        what: What the numbers are, for messages.

    Raises InvalidInputError for a pattern that fits no topic. A name without such characters is
    passed on as it is.
    """
    numbers: dict[str, int] = {}
    for pattern, number in patterns:
        if not set(pattern) & set("*?["):
            numbers[pattern] = number
            continue
        fitting = fnmatch.filter(snapshot.topics, pattern)
        if not fitting:
            raise InvalidInputError(f"{what}: no topic is like {pattern!r}")
        numbers.update(dict.fromkeys(fitting, number))
    return numbers


def _with_brokers(snapshot: Snapshot, added: Mapping[int, str | None]) -> Snapshot:
    old = snapshot.brokers
    present = sorted(set(added) & set(old.ids.tolist()))
    if present:
        raise InvalidInputError(
            f"brokers to be added: the snapshot has broker {listed(present)} already: choose "
            "other ids"
        )

    def capacities(values: Ints) -> list[int]:
        known = values[values != UNKNOWN]
        smallest = int(known.min()) if len(known) else UNKNOWN
        return [*values.tolist(), *(smallest for _ in added)]

    brokers = Brokers.of(
        [*old.ids.tolist(), *added],
        [*(old.rack_names[k] for k in old.racks.tolist()), *added.values()],
        alive=[*old.alive.tolist(), *(True for _ in added)],
        disk_bytes=capacities(old.disk_bytes),
        network_in=capacities(old.network_in),
        network_out=capacities(old.network_out),
        log_dirs=[*old.log_dirs, *(() for _ in added)],
    )
    place = np.searchsorted(brokers.ids, old.ids)
    return dataclasses.replace(
        snapshot, brokers=brokers, replicas=place[snapshot.replicas].astype(np.int32)
    )


def _without(snapshot: Snapshot, lost: Bools) -> tuple[Snapshot, str]:
    """The snapshot with dead brokers. Nobody leads what they led: Regent has not elected yet."""
    brokers = dataclasses.replace(snapshot.brokers, alive=snapshot.brokers.alive & ~lost)
    orphaned = (snapshot.leader != UNKNOWN) & lost[snapshot.leaders()]
    leader = np.where(orphaned, UNKNOWN, snapshot.leader).astype(np.int16)
    living = np.bincount(
        owners(snapshot.offsets),
        weights=brokers.alive[snapshot.replicas],
        minlength=snapshot.partitions,
    )
    gone = ints(np.flatnonzero(living == 0))
    effect = f"{int(orphaned.sum()):,} partitions lose their leader"
    if len(gone):
        names = listed([snapshot.name(int(p)) for p in gone])
        effect += f"; {len(gone):,} have no living replica ({names})"
    else:
        effect += "; all have a living replica"
    return dataclasses.replace(snapshot, brokers=brokers, leader=leader), effect

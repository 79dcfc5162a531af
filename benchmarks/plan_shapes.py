"""Clusters to plan for, from seeds alone: the shapes that Cruise Control's planner was timed on.

They follow its test class RandomCluster: 3,000 to 10,500 topics of which the early ones have many
partitions and a third has one; brokers in uneven racks; broker 1 half as large as the others. The
CRC-32 of every shape is known, so that what is compared is the same to the last replica. LinkedIn's
published sizes (270 brokers with 1.3 million replicas, 215 with 2.8 million) are two of them.
"""

import zlib
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from benchmarks.java_random import exponential, first_below
from regent_rebalance.ragged import Ints, ints, offsets_of, owners, positions
from regent_rebalance.snapshot import Brokers, Rows, Snapshot, snapshot_of

_KB, _MB = 1_000, 1_000_000
_DISK = 300_000 * _MB
_NETWORK_IN, _NETWORK_OUT = 300_000 * _KB, 200_000 * _KB

_HEAVY = 1.5
"""The exponent of Pareto's distribution."""


@dataclass(frozen=True, slots=True)
class Shape:
    """How a cluster is made.

    Attributes:
        distribution: How much a broker's chance to get a replica grows with its id: UNIFORM (not),
            LINEAR or EXPONENTIAL.
        rack_aware: Whether replicas of a partition start in different racks.
        scale: Factor of all loads.
        heavy: Whether few topics have most of all loads: their popularity has Pareto's
            distribution with the exponent 1.5 instead of the exponential one.
        crc: CRC-32 of the placement; None if nobody else has made this shape.
        cruise_control_s: CPU seconds of Cruise Control's planner, None where it has no figure.
    """

    name: str
    racks: int
    brokers: int
    topics: int
    replicas: int
    scale: float
    distribution: str = "UNIFORM"
    rack_aware: bool = False
    new: int = 0
    dead: int = 0
    heavy: bool = False
    crc: str | None = None
    cruise_control_s: float | None = None


def _a(name: str, **rest: object) -> Shape:
    return Shape(f"A {name}", 10, 40, 3_000, 50_001, 1.0, **rest)  # type: ignore[arg-type]


def _b(name: str, **rest: object) -> Shape:
    return Shape(f"B {name}", 10, 100, 5_000, 200_001, 0.625, **rest)  # type: ignore[arg-type]


def _c(name: str, **rest: object) -> Shape:
    return Shape(f"C {name}", 10, 270, 10_500, 1_300_002, 0.26, **rest)  # type: ignore[arg-type]


SHAPES = (
    _a("uniform", crc="e95b8ab1", cruise_control_s=5.6),
    _a("linear", distribution="LINEAR", crc="49d1e882", cruise_control_s=7.7),
    _a("exponential", distribution="EXPONENTIAL", crc="77468196", cruise_control_s=7.9),
    _a("rack-aware", rack_aware=True, crc="7944e4b2", cruise_control_s=6.3),
    _a("4 new", rack_aware=True, new=4, crc="7944e4b2", cruise_control_s=6.1),
    _a("2 dead", rack_aware=True, dead=2, crc="7944e4b2", cruise_control_s=4.8),
    _a("heavy", rack_aware=True, heavy=True, crc="7944e4b2"),
    _b("uniform", crc="a9525b8d", cruise_control_s=35.4),
    _b("rack-aware", rack_aware=True, crc="33fc2923", cruise_control_s=39.9),
    _b("linear", distribution="LINEAR", crc="7121fb29", cruise_control_s=55.3),
    _b("heavy", rack_aware=True, heavy=True, crc="33fc2923"),
    _b("heavy linear", distribution="LINEAR", heavy=True, crc="7121fb29"),
    _c("uniform", crc="8cf23429", cruise_control_s=130.5),
    _c("rack-aware", rack_aware=True, crc="64c552d5", cruise_control_s=190.7),
    _c("linear", distribution="LINEAR", crc="8112d234"),
    _c("heavy", rack_aware=True, heavy=True, crc="64c552d5"),
    Shape("D uniform", 10, 215, 3_500, 2_800_002, 0.096),
)
"""Cruise Control did not finish C linear within 490 s, and nobody has timed it on D, nor with loads
that few topics have most of."""


def generate(shape: Shape) -> Snapshot:
    """The cluster of a shape. Raises ValueError if it is not the known one."""
    rack = _racks(shape)
    factors, counts = _topics(shape)
    topic = np.repeat(np.arange(len(counts)), counts)
    factor = factors[topic]
    offsets = offsets_of(factor)
    replicas = _place(shape, rack, offsets)
    names = [*(f"T{i}" for i in range(shape.topics)), "TopicWithOneLeaderPerBroker"]
    partition = positions(offsets_of(counts))
    if shape.crc is not None:
        found = _crc(names, topic, partition, offsets, replicas)
        if found != shape.crc:
            raise ValueError(f"{shape.name}: CRC-32 {found} instead of {shape.crc}")
    ids = np.arange(shape.brokers + shape.new)
    # Broker 1 is half as large as the others in everything.
    whole = np.where(ids == 1, 1, 2)
    brokers = Brokers.of(
        ids.tolist(),
        [f"r{k}" for k in [*rack.tolist(), *range(shape.new)]],
        alive=(ids >= shape.dead).tolist(),
        disk_bytes=(whole * (_DISK // 2)).tolist(),
        network_in=(whole * (_NETWORK_IN // 2)).tolist(),
        network_out=(whole * (_NETWORK_OUT // 2)).tolist(),
    )
    return snapshot_of(
        brokers,
        Rows(
            topic=np.array(names)[topic].tolist(),
            partition=partition,
            lengths=factor,
            replicas=replicas,
            leader=replicas[offsets[:-1]],
            sizes=_drawn(shape, 300_000, topic[owners(offsets)], 100 * _MB),
            bytes_in=_drawn(shape, 500_000, topic[owners(offsets)], 100 * _KB)[offsets[:-1]],
            bytes_out=_drawn(shape, 700_000, topic, 100 * _KB),
        ),
    )


def _racks(shape: Shape) -> Ints:
    drawn = [int(first_below(ints([3140 + i]), shape.racks)[0]) for i in range(shape.brokers)]
    return ints([i if i < shape.racks else drawn[i] for i in range(shape.brokers)])


def _topics(shape: Shape) -> tuple[Ints, Ints]:
    """Replication factor and partitions of each topic, the extra one last."""
    topics, mean = shape.topics, shape.replicas // shape.topics
    drawn = 2 + first_below(72_033 + np.arange(topics), mean - 1)
    counts = np.ones(topics, dtype=np.int64)
    total = 3 * topics
    for i, wanted in enumerate(drawn.tolist()):
        if total + 3 * (wanted - 1) <= shape.replicas:
            counts[i] = wanted
            total += 3 * (wanted - 1)
    missing = (shape.replicas - total) // 3
    counts += missing // topics
    counts[: missing % topics] += 1
    return np.append(np.full(topics, 3), 2), np.append(counts, shape.brokers)


def _place(shape: Shape, rack: Ints, offsets: Ints) -> Ints:
    """Draw a broker for each replica; where it does not fit, go on to the next seed."""
    total, partitions = int(offsets[-1]), len(offsets) - 1
    pick = _pick(shape, 1240 + np.arange(total + 10_000))
    replicas = np.full(total, -1, dtype=np.int64)
    conflicts = np.zeros(partitions, dtype=np.int64)
    for slot in range(3):
        open_ = np.flatnonzero(np.diff(offsets) > slot)
        x = offsets[open_] + slot
        replicas[x] = pick[x + 0]
        waiting = np.arange(len(open_))
        while len(waiting):
            unfit = np.zeros(len(waiting), dtype=np.bool_)
            mine = replicas[x[waiting]]
            for earlier in range(slot):
                other = replicas[offsets[open_[waiting]] + earlier]
                unfit |= rack[other] == rack[mine] if shape.rack_aware else other == mine
            waiting = waiting[unfit]
            conflicts[open_[waiting]] += 1
            replicas[x[waiting]] = pick[x[waiting] + conflicts[open_[waiting]]]
    return replicas


def _pick(shape: Shape, seeds: npt.NDArray[np.int64]) -> Ints:
    brokers = shape.brokers
    if shape.distribution == "UNIFORM":
        return first_below(seeds, brokers)
    if shape.distribution == "LINEAR":
        value = 1 + first_below(seeds, brokers * (brokers + 1) // 2)
        ends = np.arange(1, brokers + 1) * np.arange(2, brokers + 2) // 2
        return ints(np.searchsorted(ends, value))
    value = 1 + first_below(seeds, brokers * brokers)
    return ints(np.searchsorted(np.arange(1, brokers + 1) ** 2, value))


def _drawn(shape: Shape, seed: int, topic: Ints, mean: int) -> Ints:
    """Loads of replicas or partitions of these topics, each by its topic's popularity."""
    popularity = exponential(7_234, shape.topics + 1)
    if shape.heavy:
        # The mean of Pareto's distribution is 3 with this exponent.
        popularity = np.exp(popularity / _HEAVY) / 3
    return ints(exponential(seed, len(topic)) * mean * shape.scale * popularity[topic])


def _crc(names: list[str], topic: Ints, partition: Ints, offsets: Ints, replicas: Ints) -> str:
    text, ends = list(map(str, replicas.tolist())), offsets.tolist()
    lines = (
        f"{names[t]}-{p}:{','.join(text[begin:end])}\n"
        for t, p, begin, end in zip(
            topic.tolist(), partition.tolist(), ends[:-1], ends[1:], strict=True
        )
    )
    return f"{zlib.crc32(''.join(lines).encode()):08x}"

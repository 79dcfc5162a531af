"""What `kafka-reassign-partitions --generate` proposes for a cluster, and what that would cost.

The tool asks brokers for the present assignment; here its own code is given one that no broker has.
"""

import resource
import subprocess
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.benchmark import KAFKA_VERSION
from regent_rebalance.check import missed
from regent_rebalance.goals import RACK, Goals
from regent_rebalance.plan import Spread, spread_of
from regent_rebalance.problem import Problem, problem_of
from regent_rebalance.quantities import quantities_of
from regent_rebalance.ragged import Ints, ints, offsets_of, owners
from regent_rebalance.snapshot import Snapshot
from sandbox.java import TUNED_FOR_THROUGHPUT, compiled_program
from sandbox.kafka_jars import kafka_jars

_SOURCE = Path(__file__).parent / "java" / "GenerateAssignment.java"
_HEAP_MB = 4096


@dataclass(frozen=True, slots=True)
class Proposal:
    """A proposed assignment.

    Attributes:
        cpu_s: Processor time of the calculation, without the start of Java.
        peak_mib: Of the process of Java.
        offsets: Where the replicas of each partition of the snapshot begin.
        replicas: Their brokers, by position in the snapshot; the first leads.
    """

    cpu_s: float
    peak_mib: int
    offsets: Ints
    replicas: Ints


@dataclass(frozen=True, slots=True)
class Cost:
    """What a proposal does, and what it leaves.

    Attributes:
        moves: New replicas: each is a copy.
        bytes: What the copies have.
        leader_changes: Partitions that get another leader.
        missed: Goals that the proposal does not meet.
        replicas, leaders: How evenly they lie on the brokers.
    """

    moves: int
    bytes: int
    leader_changes: int
    missed: tuple[str, ...]
    replicas: Spread
    leaders: Spread


def generate_assignment(
    snapshot: Snapshot, goals: Goals, *, timeout_s: float, version: str = KAFKA_VERSION
) -> Proposal:
    """Run the tool's calculation for all topics, on the brokers that may get replicas.

    Raises subprocess.CalledProcessError or subprocess.TimeoutExpired.
    """
    program = compiled_program(
        kafka_jars(version), _SOURCE, heap_mb=_HEAP_MB, options=TUNED_FOR_THROUGHPUT
    )
    with program as command:
        printed = subprocess.run(
            command,
            input=_text(snapshot, goals),
            stdout=subprocess.PIPE,
            check=True,
            text=True,
            timeout=timeout_s,
        ).stdout
    peak_mib = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024
    seconds, *lines = printed.splitlines()
    return _proposal(snapshot, float(seconds), peak_mib, lines)


def cost_of(snapshot: Snapshot, goals: Goals, proposal: Proposal) -> Cost:
    """Compare a proposal with what is there and with the goals, as a plan is compared."""
    problem = problem_of(snapshot, goals)
    leads = proposal.replicas[proposal.offsets[:-1]]
    partition = owners(proposal.offsets)
    present = owners(snapshot.offsets) * problem.brokers + snapshot.replicas
    new = ~np.isin(partition * problem.brokers + proposal.replicas, present)
    after = (proposal.offsets, proposal.replicas, leads)
    unmet = missed(snapshot, goals, problem, quantities_of(snapshot, goals, problem), after)
    names = {*unmet, *((RACK,) if goals.has(RACK) and _shares_racks(problem, proposal) else ())}
    return Cost(
        moves=int(new.sum()),
        bytes=int(snapshot.copy_bytes()[partition[new]].sum()),
        leader_changes=int((leads != snapshot.leaders()).sum()),
        missed=tuple(name for name in goals.names if name in names),
        replicas=_spread("replicas", problem, proposal.replicas),
        leaders=_spread("leaders", problem, leads),
    )


def _text(snapshot: Snapshot, goals: Goals) -> str:
    brokers = snapshot.brokers
    taking = problem_of(snapshot, goals).takes
    ids = brokers.ids.tolist()
    lines = [str(int(taking.sum()))]
    lines += [f"{ids[b]} {brokers.rack_names[brokers.racks[b]]}" for b in np.flatnonzero(taking)]
    named = [str(ids[b]) for b in snapshot.replicas.tolist()]
    ends = snapshot.offsets.tolist()
    lines += [
        f"{snapshot.topics[topic]} {partition} {','.join(named[begin:end])}"
        for topic, partition, begin, end in zip(
            snapshot.topic.tolist(), snapshot.partition.tolist(), ends[:-1], ends[1:], strict=True
        )
    ]
    return "\n".join(lines)


def _proposal(snapshot: Snapshot, cpu_s: float, peak_mib: int, lines: list[str]) -> Proposal:
    found = {}
    for line in lines:
        topic, partition, replicas = line.split(" ")
        found[topic, int(partition)] = [int(broker) for broker in replicas.split(",")]
    topics = [snapshot.topics[topic] for topic in snapshot.topic.tolist()]
    rows = [found[name] for name in zip(topics, snapshot.partition.tolist(), strict=True)]
    flat = [broker for row in rows for broker in row]
    return Proposal(
        cpu_s,
        peak_mib,
        offsets_of(ints([len(row) for row in rows])),
        snapshot.brokers.positions_of(flat, what="replicas of the proposal"),
    )


def _shares_racks(problem: Problem, proposal: Proposal) -> bool:
    """Whether a partition has more replicas in a rack than it must."""
    pairs = owners(proposal.offsets) * problem.racks + problem.rack[proposal.replicas]
    pair, count = np.unique(pairs, return_counts=True)
    limit = np.full(len(proposal.offsets) - 1, np.iinfo(np.int64).max)
    limit[problem.movable] = problem.rack_limits()
    return bool((count > limit[pair // problem.racks]).any())


def _spread(name: str, problem: Problem, brokers: Ints) -> Spread:
    return spread_of(name, np.bincount(brokers, minlength=problem.brokers)[problem.keeps])

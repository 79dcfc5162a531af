"""Seeds that once failed, with what was wrong. They must not fail again."""

from __future__ import annotations

import pytest

from tests.simulation.simulation import simulate

ONCE_FAILED = {
    10: "a broker whose damaged registration was corrected stayed out",
    70: "a topic created and marked at once was not deleted",
    109: "an answer to a former term postponed a deletion forever",
    3176: "a leader returned to work with an ISR that was out of date",
    535: "a deleted partition whose state was unreadable stayed in the metadata of brokers",
    12: "a StopReplica answered in a former term completed the deletion of the next one",
    49: "the marker of a topic whose creation was still news was taken for void",
    252: "a config change numbered by hand made the controller deaf to all that followed",
    254: "an answer to a former life of a broker postponed a deletion forever",
    354: "a state znode of a later epoch left a replica online that was to be deleted",
    562: "an ISR change whose answer was lost was never sent to the leader",
    30907: "an answer about a replica that was moved away completed the deletion of the next one",
    20828: "what a broker had refused was kept after the replica had been moved away",
    1000460: "a place in the first ISR was taken for proof that a replica was of the new topic",
    274: "the only replica of a topic created again was of the former one, and stayed",
    1735: "a follower that could not find its leader ignored it when it returned",
    41191: "a place in the first ISR was taken for proof at the start of a broker, too",
    21187: "what a broker had deleted before its restart was not asked for again, and stayed noted",
}
"""What a seed makes of the world changes with the simulation: the reasons stay true all the same,
and most have a test of their own."""


@pytest.mark.parametrize("seed", ONCE_FAILED)
def test_it_holds_now(seed: int) -> None:
    simulate(seed)

"""Stub followers are in sync once they and their leader are informed, as real ones are later."""

from __future__ import annotations

from benchmarks.stub.followers import InSync
from benchmarks.stub.requests import PartitionId, PartitionState

TP: PartitionId = ("t", 0)


def state(
    *, epoch: int = 5, isr: tuple[int, ...] = (1, 2), replicas: tuple[int, ...] = (1, 2, 3)
) -> PartitionState:
    return PartitionState(2, isr[0], epoch, isr, 7, replicas)


def test_an_isr_grows_when_leader_and_followers_have_been_informed() -> None:
    followers = InSync()
    assert followers.sent(1, [(TP, state())]) == []
    assert followers.sent(2, [(TP, state())]) == []
    (growth,) = followers.sent(3, [(TP, state())])
    assert growth == (TP, state(isr=(1, 2, 3)))

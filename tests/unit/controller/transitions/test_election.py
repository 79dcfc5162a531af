"""Elections: the table of the four strategies, and what holds for every election."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regent.controller.transitions import election
from regent.controller.transitions.election import Elected, ElectionInput, ElectionStrategy
from regent.model.partition import LeaderRecoveryState, ReplicaAssignment

RECOVERED = int(LeaderRecoveryState.RECOVERED)
RECOVERING = int(LeaderRecoveryState.RECOVERING)

Ids = tuple[int, ...]


def offline(
    assignment: Ids,
    isr: Ids,
    live: set[int],
    *,
    unclean: bool = False,
    recovery_state: int = RECOVERED,
    marks_recovery: bool = True,
    shutting_down: frozenset[int] = frozenset(),
) -> Elected | None:
    return election.offline(
        assignment,
        isr,
        live,
        recovery_state=recovery_state,
        unclean_enabled=unclean,
        marks_recovery=marks_recovery,
        live_or_shutting_down=live | shutting_down,
    )


def reassign(target: Ids, isr: Ids, live: set[int]) -> Elected | None:
    return election.reassign(target, isr, live, recovery_state=RECOVERED)


def preferred(assignment: Ids, isr: Ids, live: set[int]) -> Elected | None:
    return election.preferred(assignment, isr, live, recovery_state=RECOVERED)


def controlled_shutdown(
    assignment: Ids, isr: Ids, live: set[int], shutting_down: set[int]
) -> Elected | None:
    return election.controlled_shutdown(
        assignment, isr, live, shutting_down, recovery_state=RECOVERED
    )


@pytest.mark.parametrize(
    ("strategy", "isr", "informed"),
    [
        (election.OFFLINE, (1, 3, 4), (1,)),
        (election.OFFLINE, (3, 4), (1, 3)),
        (election.REASSIGN, (3, 4), (1, 2, 3, 4)),
        (election.PREFERRED, (3, 4), (1, 2, 3, 4)),
        (election.CONTROLLED_SHUTDOWN, (3, 4), (1, 2, 3)),
    ],
)
def test_strategy_informs_these_replicas(
    strategy: ElectionStrategy, isr: Ids, informed: Ids
) -> None:
    """Broker 1 is live, brokers 2 and 3 are shutting down, and broker 4 is down."""
    given = ElectionInput(
        ReplicaAssignment((1, 2, 3, 4)), 4, isr, RECOVERED, (1,), (1, 2, 3), {2, 3}, False, True
    )
    assert strategy.recipients(given) == informed


class TestOffline:
    def test_one_that_is_shutting_down_leads_where_nobody_else_of_the_isr_is_left(self) -> None:
        stopping = frozenset({2, 3})
        assert offline((1, 2, 3), (3, 2, 9), {1}, shutting_down=stopping, unclean=True) == Elected(
            2, (3, 2), RECOVERED
        )
        assert offline((1, 2, 3), (3, 1), {1}, shutting_down=stopping) == Elected(
            1, (1,), RECOVERED
        )

    @pytest.mark.parametrize("state", [RECOVERED, RECOVERING])
    def test_a_clean_election_keeps_the_recovery_state(self, state: int) -> None:
        elected = offline((1, 2), (1, 2), {2}, recovery_state=state)
        assert elected == Elected(2, (2,), state)


ids = st.lists(st.integers(0, 6), min_size=1, max_size=5, unique=True).map(tuple)
subsets = st.sets(st.integers(0, 6))


@given(ids, ids, subsets, st.booleans(), st.booleans())
def test_an_offline_election_picks_a_live_replica_and_loses_data_only_if_allowed(
    assignment: Ids, isr: Ids, live: set[int], unclean: bool, marks: bool
) -> None:
    elected = offline(assignment, isr, live, unclean=unclean, marks_recovery=marks)
    clean = [r for r in assignment if r in live and r in isr]
    possible = clean or (unclean and [r for r in assignment if r in live])
    assert (elected is not None) == bool(possible)
    if elected is None or not possible:
        return
    assert elected.leader == possible[0]
    assert elected.leader in elected.isr
    assert elected.unclean == (not clean)
    if clean:
        assert elected.isr == tuple(r for r in isr if r in live)
    else:
        assert elected.isr == (elected.leader,)
        assert elected.leader_recovery_state == (RECOVERING if marks else RECOVERED)


@given(ids, ids, subsets)
def test_a_reassignment_or_a_preference_never_touches_the_isr(
    assignment: Ids, isr: Ids, live: set[int]
) -> None:
    moved = reassign(assignment, isr, live)
    favoured = preferred(assignment, isr, live)
    for elected in (moved, favoured):
        if elected is not None:
            assert elected.isr == isr
            assert elected.leader in isr
            assert elected.leader in live
    assert (favoured is not None) == (assignment[0] in live and assignment[0] in isr)
    assert (moved is not None) == any(r in live and r in isr for r in assignment)


@given(ids, ids, subsets, subsets)
def test_a_leaving_broker_is_never_elected_and_never_stays_in_sync(
    assignment: Ids, isr: Ids, live: set[int], shutting_down: set[int]
) -> None:
    elected = controlled_shutdown(assignment, isr, live, shutting_down)
    candidates = [r for r in assignment if r in live and r in isr and r not in shutting_down]
    assert (elected is not None) == bool(candidates)
    if elected is not None:
        assert elected.leader == candidates[0]
        assert elected.isr == tuple(r for r in isr if r not in shutting_down)

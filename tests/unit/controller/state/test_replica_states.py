"""States of replicas, some of which are in no table yet."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from regent.controller.state.replica_states import ReplicaStates
from regent.controller.state.states import ReplicaState
from regent.model.partition import TopicPartition

PARTITIONS = [TopicPartition("t", number) for number in range(7)]
BROKERS = (1, 2)

some = st.lists(st.sampled_from(PARTITIONS), unique=True)
steps = st.one_of(
    st.tuples(
        st.sampled_from(["load", "set"]),
        st.sampled_from(BROKERS),
        some,
        st.sampled_from([ReplicaState.ONLINE, ReplicaState.OFFLINE]),
    ),
    st.tuples(st.just("remove"), st.sampled_from(BROKERS), st.sampled_from(PARTITIONS)),
    st.tuples(st.just("tabulate"), st.integers(1, 4)),
    st.tuples(st.just("ask"), st.sampled_from(BROKERS)),
)


@given(steps=st.lists(steps, max_size=20))
def test_what_is_loaded_is_known_whether_or_not_it_is_in_a_table(
    steps: list[tuple[object, ...]],
) -> None:
    states = ReplicaStates()
    known: dict[int, dict[TopicPartition, ReplicaState]] = {}
    for step in steps:
        match step:
            case ("load", int(broker_id), list(partitions), ReplicaState() as state):
                states.load(broker_id, partitions, state)
                known[broker_id] = dict.fromkeys(partitions, state)
            case ("set", int(broker_id), list(partitions), ReplicaState() as state):
                states.set(broker_id, partitions, state)
                known.setdefault(broker_id, {}).update(dict.fromkeys(partitions, state))
            case ("remove", int(broker_id), TopicPartition() as tp):
                states.remove(broker_id, tp)
                known.get(broker_id, {}).pop(tp, None)
            case ("tabulate", int(most)):
                states.tabulate_some(most)
            case ("ask", int(broker_id)):
                assert states.on(broker_id) == known.get(broker_id, {})
        assert [b for b in BROKERS if states.has_some_on(b)] == [b for b in BROKERS if known.get(b)]
        assert sorted(states.hosts()) == sorted(b for b in BROKERS if known.get(b))
    for broker_id in BROKERS:
        assert list(states.on(broker_id).items()) == list(known.get(broker_id, {}).items())


def test_tables_are_made_some_replicas_at_a_time() -> None:
    states = ReplicaStates()
    for broker_id in BROKERS:
        states.load(broker_id, PARTITIONS, ReplicaState.ONLINE)
    calls = 1
    while states.tabulate_some(3):
        calls += 1
    assert calls == len(BROKERS) * 3
    for broker_id in BROKERS:
        assert states.on(broker_id) == dict.fromkeys(PARTITIONS, ReplicaState.ONLINE)
    assert not states.tabulate_some(3)

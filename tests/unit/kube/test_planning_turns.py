"""Whose plan is made next."""

from __future__ import annotations

from regent.kube.object_cache import ObjectKey
from regent.kube.planning_turns import Lane, Turn, next_turn

LIMITS = {Lane.LOOK: 1, Lane.PROCESS: 1, Lane.JOB: 2, Lane.GIVE_UP: 1}


def turn(name: str, lane: Lane = Lane.JOB, *, goes_on: bool = False) -> Turn:
    """Of an object that is named as ``namespace/name``."""
    namespace, _, own = name.partition("/")
    return Turn(ObjectKey("PartitionReassignment", namespace, own), lane, goes_on)


def order(waiting: list[Turn], under_way: list[Turn]) -> list[str]:
    """The names of those that begin, as long as nothing ends."""
    begun: list[Turn] = []
    while (found := next_turn(waiting, [*under_way, *begun], LIMITS)) is not None:
        begun.append(found)
    return [f"{each.key.namespace}/{each.key.name}" for each in begun]


def test_jobs_go_side_by_side_up_to_their_limit_and_processes_one_at_a_time() -> None:
    jobs = [turn("a/1"), turn("a/2"), turn("a/3")]
    assert order(jobs, []) == ["a/1", "a/2"]
    processes = [turn("a/4", Lane.PROCESS), turn("a/5", Lane.PROCESS)]
    assert sorted(order([*jobs, *processes], [])) == ["a/1", "a/2", "a/4"]
    assert order(processes, [turn("a/1"), turn("a/2")]) == ["a/4"], "full of jobs, not of processes"


def test_a_namespace_with_many_leaves_room_for_the_others() -> None:
    many = [turn(f"many/{number}") for number in range(5)]
    assert order([*many, turn("few/1")], []) == ["many/0", "few/1"]
    assert order([*many, turn("few/1")], [turn("many/9")]) == ["few/1"]


def test_for_one_object_one_thing_is_done_at_a_time() -> None:
    giving_up = turn("a/1", Lane.GIVE_UP)
    assert order([turn("a/1"), turn("a/2")], [giving_up]) == ["a/2"]


def test_a_job_that_is_there_goes_on_whatever_the_limit_and_takes_its_share_of_it() -> None:
    left = [turn(f"a/{number}", goes_on=True) for number in range(3)]
    assert order([turn("b/1"), *left], []) == ["a/0", "a/1", "a/2"]


def test_no_new_job_is_begun_before_it_is_known_which_are_there() -> None:
    assert order([turn("a/1"), turn("b/1", Lane.LOOK)], []) == ["b/1"]
    assert order([turn("a/1")], [turn("b/1", Lane.LOOK)]) == []
    assert order([turn("a/1", goes_on=True)], [turn("b/1", Lane.LOOK)]) == ["a/1"]
    deleting = turn("b/1", Lane.GIVE_UP)
    assert order([turn("a/1"), turn("b/1", Lane.LOOK)], [deleting]) == ["a/1"]

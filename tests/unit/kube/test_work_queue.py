from __future__ import annotations

import asyncio
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regent.kube.work_queue import (
    BACKOFF_MAX_S,
    CHEAP_S,
    RETRIES_PER_S,
    WorkQueue,
    backoff_s,
)
from tests.unit.kube.jumping_clock import elapse, jumping


def _queue() -> WorkQueue[str]:
    return WorkQueue(jitter=lambda: 1.0)


@given(count=st.integers(min_value=1, max_value=10_000), jitter=st.floats(0, 1))
def test_backoff_stays_within_its_bounds(count: int, jitter: float) -> None:
    delay_s = backoff_s(count, jitter=jitter)
    assert 0.25 <= delay_s <= BACKOFF_MAX_S
    assert delay_s <= backoff_s(count + 1, jitter=1.0)


@jumping
async def test_a_key_is_queued_once_and_in_order() -> None:
    queue = _queue()
    for key in ("a", "b", "a", "c", "b"):
        queue.add(key)
    assert [await queue.get() for _ in range(len(queue))] == ["a", "b", "c"]


@jumping
async def test_a_key_is_with_one_worker_at_a_time_and_comes_back_if_added() -> None:
    queue = _queue()
    queue.add("a")
    assert await queue.get() == "a"
    queue.add("a")
    queue.add("a")
    assert len(queue) == 0
    assert not queue.is_idle
    queue.done("a")
    assert await queue.get() == "a"
    queue.done("a")
    assert queue.is_idle


@jumping
async def test_a_key_for_a_worker_that_is_cancelled_goes_to_another() -> None:
    queue = _queue()
    first, second = (asyncio.create_task(queue.get()) for _ in range(2))
    await elapse(1)
    queue.add("a")
    first.cancel()
    await asyncio.gather(first, return_exceptions=True)
    assert await second == "a"


@jumping
async def test_it_says_when_nothing_waits_or_is_worked_on_any_more() -> None:
    idle: list[bool] = []
    queue: WorkQueue[str] = WorkQueue(
        jitter=lambda: 1.0, on_idle=lambda: idle.append(queue.is_idle)
    )
    queue.add("a")
    queue.add("b")
    for _ in range(2):
        await queue.get()
    queue.add("a")
    queue.done("a")
    queue.done("b")
    assert idle == [], "a is to be worked on again"
    await queue.get()
    queue.done("a")
    assert idle == [True]


@jumping
async def test_of_several_delays_the_shortest_counts() -> None:
    queue = _queue()
    loop = asyncio.get_running_loop()
    started = loop.time()
    for delay_s in (30, 10, 20):
        queue.add_after("a", delay_s)
    await queue.get()
    queue.done("a")
    took = loop.time() - started
    # The longer ones are void: nothing comes any more.
    await elapse(100)
    assert queue.is_idle
    assert took == pytest.approx(10)


@jumping
async def test_what_has_cost_much_rests_before_it_is_handed_out_again() -> None:
    queue, began = _queue(), asyncio.get_running_loop().time()
    handed_out = []
    for cost_s in (0.5, 100.0, CHEAP_S, 0.0):
        queue.add("a")
        queue.add_after("a", 0.1)
        await queue.get()
        queue.add("a")
        handed_out.append(asyncio.get_running_loop().time() - began)
        queue.done("a", cost_s=cost_s)
    assert handed_out == pytest.approx([0, 2, 7, 7])


@jumping
async def test_others_do_not_wait_for_what_rests() -> None:
    queue = _queue()
    queue.add("a")
    await queue.get()
    queue.done("a", cost_s=0.5)
    queue.add("a")
    queue.add("b")
    handed_out = []
    for _ in range(2):
        handed_out.append(await queue.get())
        queue.done(handed_out[-1])
    await elapse(100)
    assert queue.is_idle
    assert handed_out == ["b", "a"]


@jumping
async def test_failures_in_a_row_wait_longer_until_one_succeeds() -> None:
    queue = _queue()
    delays = []
    for _ in range(9):
        delays.append(queue.retry("a"))
        await elapse(100)
    queue.succeed("a")
    delays.append(queue.retry("a"))
    assert delays == [0.5, 1, 2, 4, 8, 16, 32, 60, 60, 0.5]


@jumping
async def test_many_failures_at_once_come_back_one_after_another() -> None:
    queue = _queue()
    keys = [str(i) for i in range(1000)]
    for key in keys:
        queue.retry(key)
    started = asyncio.get_running_loop().time()
    for _ in keys:
        queue.done(await queue.get())
    assert asyncio.get_running_loop().time() - started == pytest.approx(
        1000 / RETRIES_PER_S, rel=0.01
    )


@jumping
async def test_a_queue_that_moves_is_not_stalled_however_long_it_is() -> None:
    queue = _queue()
    stalled = [queue.stalled_s()]
    await elapse(100)
    for key in "abc":
        queue.add(key)
    await elapse(50)
    stalled.append(queue.stalled_s())
    queue.done(await queue.get())
    stalled.append(queue.stalled_s())
    await elapse(20)
    stalled.append(queue.stalled_s())
    for _ in "bc":
        queue.done(await queue.get())
    await elapse(20)
    stalled.append(queue.stalled_s())
    assert stalled == pytest.approx([0, 50, 0, 20, 0])


@jumping
async def test_whether_it_is_stalled_can_be_asked_from_any_thread() -> None:
    queue = _queue()
    queue.add("a")
    await elapse(30)
    answers: list[float] = []
    asking = threading.Thread(target=lambda: answers.append(queue.stalled_s()))
    asking.start()
    asking.join()
    assert answers[0] == pytest.approx(30)


@jumping
async def test_closed_means_that_nothing_comes_back() -> None:
    queue = _queue()
    queue.add_after("a", 5)
    queue.close()
    await elapse(10)
    assert queue.is_idle

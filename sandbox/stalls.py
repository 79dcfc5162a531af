"""Random stalls: event loops and new threads wait now and then, as on a machine without processors.

A test, or a program, that relies on an order of threads fails with stalls long before it fails on
a busy machine. `install` changes the process that calls it. With `SEED_VARIABLE` in the
environment, forks of Regent stall, too.
"""

import asyncio
import os
import random
import threading
import time

SEED_VARIABLE = "SANDBOX_STALLS"

_CALLBACKS_PER_STALL = 2_000
_THREADS_PER_STALL = 4
_LONGEST_S = 0.3


def install(seed: int) -> None:
    """Let callbacks of event loops and starts of threads stall from now on."""
    # Not the shared generator: what a test draws stays the same.
    draws = random.Random(seed)  # noqa: S311 - no secret
    run_callback, run_thread = asyncio.Handle._run, threading.Thread.run

    def stalled_callback(handle: asyncio.Handle) -> None:
        if draws.randrange(_CALLBACKS_PER_STALL) == 0:
            time.sleep(draws.uniform(0, _LONGEST_S))
        run_callback(handle)

    def stalled_thread(thread: threading.Thread) -> None:
        if draws.randrange(_THREADS_PER_STALL) == 0:
            time.sleep(draws.uniform(0, _LONGEST_S))
        run_thread(thread)

    asyncio.Handle._run = stalled_callback  # type: ignore[method-assign,assignment]
    threading.Thread.run = stalled_thread  # type: ignore[method-assign,assignment]


def install_from_environment() -> None:
    """Install stalls if the environment has a seed; each process stalls at moments of its own."""
    seed = os.environ.get(SEED_VARIABLE)
    if seed is not None:
        install(int(seed) + os.getpid())

"""Computations beside others: NumPy and compiled functions let other threads go on."""

from __future__ import annotations

import resource
from collections.abc import Callable
from concurrent.futures import Future, wait
from threading import Thread
from types import TracebackType
from typing import Generic, TypeVar

_T = TypeVar("_T")

_BYTES_OF_A_REPLICA = 550
_BYTES_IN_ANY_CASE = 150 << 20
"""What a plan takes at most whose computations are side by side: 1,370 MiB with 2.8 million
replicas, 780 with 1.3 million. One after the other they take a quarter less."""


def has_room_beside(replicas: int) -> bool:
    """Whether the process may have the memory for computations side by side."""
    need = _BYTES_IN_ANY_CASE + replicas * _BYTES_OF_A_REPLICA
    limits = [resource.getrlimit(kind)[0] for kind in (resource.RLIMIT_DATA, resource.RLIMIT_AS)]
    return all(limit == resource.RLIM_INFINITY or need <= limit for limit in limits)


class Beside(Generic[_T]):
    """A computation on a thread of its own, which has ended when the ``with`` block is left.

    It must not change what others read. Where no thread can be started, it is done at once: only
    the time that it takes is another one.

    Args:
        compute: What is computed.
        at_once: Whether it is done at once: side by side, computations take more memory at a time.
    """

    def __init__(self, compute: Callable[[], _T], *, at_once: bool = False) -> None:
        self._future: Future[_T] = Future()
        self.at_once = at_once
        if at_once:
            self._run(compute)
            return
        try:
            Thread(target=self._run, args=(compute,), name="beside").start()
        except RuntimeError:
            self._run(compute)

    def __enter__(self) -> Beside[_T]:
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        wait((self._future,))

    def result(self) -> _T:
        """What was computed, once it is there. Raises what the computation has raised."""
        return self._future.result()

    def _run(self, compute: Callable[[], _T]) -> None:
        try:
            found = compute()
        except BaseException as error:  # noqa: BLE001 - for whoever asks for the result
            self._future.set_exception(error)
        else:
            self._future.set_result(found)

"""Functions compiled to machine code by Numba, kept on disk where that can be written.

Compiled functions reserve no memory. So they count no references (``_nrt=False``): counting those
of a case's many arrays at each call took ten times as long as all the rest.

Results must be the same on every machine: code is made for a generic processor, without fast
mathematics, and no function uses several threads. Other threads go on beside it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import suppress
from types import FunctionType
from typing import Any, TypeVar, cast

import numba

from regent_rebalance.machine_code import machine_code_folder

_config: Any = numba.config
_config.CPU_NAME, _config.CPU_FEATURES = "generic", ""
_config.CACHE_DIR = machine_code_folder(_config.CACHE_DIR)

_OPTIONS: dict[str, Any] = {"fastmath": False, "nogil": True, "_nrt": False}

_F = TypeVar("_F", bound=Callable[..., object])


class _OptionalCache:
    """Numba's cache of one function, where whatever fails counts as no cache.

    A file may be torn, or somebody else's, and the disk full: then it is compiled anew. What cannot
    be read is replaced where that can be done.
    """

    _is_reported = False

    def __init__(self, cache: Any) -> None:
        self._cache = cache

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cache, name)

    def load_overload(self, signature: Any, target_context: Any) -> Any:
        try:
            # Numba's method loads all that compiling needs before, which takes longer than the
            # rest. Nothing of that is needed if the code is there; whoever compiles loads it.
            load = getattr(self._cache, "_load_overload", self._cache.load_overload)
            return load(signature, target_context)
        except Exception as error:  # noqa: BLE001 - whatever a torn pickle raises
            self._report("read", error)
        with suppress(Exception):
            self._cache.flush()
        return None

    def save_overload(self, signature: Any, data: Any) -> None:
        try:
            self._cache.save_overload(signature, data)
        except Exception as error:  # noqa: BLE001 - it reads what is there, too
            self._report("written", error)

    def _report(self, what: str, error: Exception) -> None:
        """Once in a process: there are dozens of functions."""
        if not _OptionalCache._is_reported:
            _OptionalCache._is_reported = True
            sys.stderr.write(
                f"Compiled code in {self._cache.cache_path} cannot be {what} "
                f"({type(error).__name__}: {error}): it is compiled anew, which takes a while\n"
            )


def compiled(function: _F) -> _F:
    """The function, compiled when it is first called with arguments of these types."""
    try:
        dispatcher: Any = numba.njit(cache=True, **_OPTIONS)(function)
    except RuntimeError:
        # No folder can be written, neither beside the module nor the user's: it is compiled anew
        # in each process.
        return cast(_F, numba.njit(**_OPTIONS)(function))
    dispatcher._cache = _OptionalCache(dispatcher._cache)
    return cast(_F, dispatcher)


def compiled_together(*functions: Callable[..., Any]) -> list[Callable[..., Any]]:
    """Functions of one module, compiled; they themselves stay as they are.

    Args:
        functions: Each before those that call it. What they call by name is the compiled one.
    """
    names: dict[str, Any] = dict(functions[0].__globals__)
    for function in functions:
        copy = FunctionType(function.__code__, names, function.__name__, function.__defaults__)
        copy.__module__, copy.__qualname__ = function.__module__, function.__qualname__
        names[function.__name__] = compiled(copy)
    return [names[function.__name__] for function in functions]


def inlined(function: _F) -> _F:
    """The same for small functions: they become part of their callers, and cost no call."""
    return cast(_F, numba.njit(forceinline=True, **_OPTIONS)(function))

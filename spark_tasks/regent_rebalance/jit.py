"""Functions compiled to machine code by Numba, kept on disk where that can be written.

Compiled functions reserve no memory. So they count no references (``_nrt=False``): counting those
of a case's many arrays at each call took ten times as long as all the rest.

Results must be the same on every machine: code is made for a generic processor, without fast
mathematics, and runs on one thread.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

from regent_rebalance.machine_code import machine_code_folder

_config: Any = numba.config
_config.CPU_NAME, _config.CPU_FEATURES = "generic", ""
_config.CACHE_DIR = machine_code_folder(_config.CACHE_DIR)

_OPTIONS: dict[str, Any] = {"fastmath": False, "_nrt": False}

_F = TypeVar("_F", bound=Callable[..., object])


def compiled(function: _F) -> _F:
    """The function, compiled when it is first called with arguments of these types."""
    try:
        return cast(_F, numba.njit(cache=True, **_OPTIONS)(function))
    except RuntimeError:
        # No folder can be written, neither beside the module nor the user's: it is compiled anew
        # in each process.
        return cast(_F, numba.njit(**_OPTIONS)(function))


def inlined(function: _F) -> _F:
    """The same for small functions: they become part of their callers, and cost no call."""
    return cast(_F, numba.njit(forceinline=True, **_OPTIONS)(function))

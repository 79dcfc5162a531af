"""Functions compiled to machine code by Numba, kept on disk where that can be written.

Compiled functions reserve no memory. So they count no references (``_nrt=False``): counting those
of a case's many arrays at each call took ten times as long as all the rest.

Numba makes what it keeps anew when the function's own module changes, not when another one does
that is compiled into it. A plan by a mixture of old and new code might claim a bound that does not
hold. So each state of the whole package has a folder of its own.

Results must be the same on every machine: code is made for a generic processor, without fast
mathematics, and runs on one thread.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import numba

_config: Any = numba.config
_config.CPU_NAME, _config.CPU_FEATURES = "generic", ""


def cache_folder(package: Path, configured: str) -> str:
    """Where the machine code of a package, as it is now, is kept.

    Args:
        package: The folder of its modules.
        configured: ``NUMBA_CACHE_DIR``; empty: beside the modules.

    Returns:
        A folder; empty where none can be made, so that Numba looks for one (it tries the user's).
    """
    digest = hashlib.sha256()
    for module in sorted(package.glob("*.py")):
        digest.update(module.name.encode() + b"\0" + module.read_bytes())
    folder = Path(configured or package / "__pycache__") / f"machine-code-{digest.hexdigest()[:16]}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return configured
    return str(folder)


_config.CACHE_DIR = cache_folder(Path(__file__).parent, _config.CACHE_DIR)

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

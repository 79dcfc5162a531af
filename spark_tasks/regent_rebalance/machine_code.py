"""Where the machine code that Numba makes is kept.

Numba makes what it keeps anew when the function's own module changes, not when another one does
that is compiled into it. A plan by a mixture of old and new code might claim a bound that does not
hold. So each state of the whole package has a folder of its own.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Final

_PACKAGE: Final = Path(__file__).parent


def machine_code_folder(configured: str, *, package: Path = _PACKAGE) -> str:
    """Where the machine code of a package, as it is now, is kept.

    Args:
        configured: ``NUMBA_CACHE_DIR``; empty: beside the modules.
        package: The folder of its modules.

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

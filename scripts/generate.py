"""Writes everything in the repository that is generated from the code; with ``--check`` compares.

Each generator returns paths and contents. Files that exist in a generated folder but are no longer
generated are reported, too.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

from regent.resources.crd import render_crds
from regent.settings import render_markdown

ROOT = Path(__file__).resolve().parent.parent


def _crds() -> dict[Path, str]:
    return {ROOT / "crds" / name: content for name, content in render_crds().items()}


def _settings() -> dict[Path, str]:
    return {ROOT / "docs" / "settings.md": render_markdown()}


GENERATORS: tuple[Callable[[], dict[Path, str]], ...] = (_crds, _settings)


def main() -> int:
    """Write, or with ``--check`` report what differs; the exit status says whether all is well."""
    check = "--check" in sys.argv[1:]
    stale = 0
    for generator in GENERATORS:
        for path, content in generator().items():
            if path.is_file() and path.read_text(encoding="utf-8") == content:
                continue
            stale += 1
            print(f"{'out of date' if check else 'written'}: {path.relative_to(ROOT)}")  # noqa: T201
            if not check:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(content, encoding="utf-8")
    if check and stale:
        print("run `make generate` and commit the result", file=sys.stderr)  # noqa: T201
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main())

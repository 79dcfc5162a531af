"""The planner's image, and the Spark operator, which runs it as driver and executors."""

import shutil
import tarfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sandbox.caching import content_hash
from sandbox.kubernetes_binaries import node_binaries
from sandbox.node.building import (
    PYTHON,
    ROOT,
    cached_layer,
    make_venv,
    require_same_python,
    uv_install,
    write_program,
)
from sandbox.node.building_inside import run_inside
from sandbox.node.debian import base_layers
from sandbox.node.layers import Image

_VENV = "opt/planner"
_USER, _GROUP = 185, 0
PLANNER_CONFIG: Mapping[str, Any] = {
    "Env": [
        f"PATH=/{_VENV}/bin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "SPARK_HOME=/opt/spark",
        "PYTHONPATH=/opt/regent",
        "PYSPARK_PYTHON=python3",
        "PYSPARK_DRIVER_PYTHON=python3",
        "PYTHONDONTWRITEBYTECODE=1",
        "PYTHONUNBUFFERED=1",
        "NUMBA_CACHE_DIR=/opt/numba",
    ],
    "User": f"{_USER}:{_GROUP}",
    "WorkingDir": "/tmp",  # noqa: S108
    "Entrypoint": ["/opt/entrypoint.sh"],
}
"""As in `spark_tasks/Dockerfile`."""

_TASKS = ROOT / "spark_tasks"
_LOCK = ROOT / "requirements" / "planner.txt"
_OPERATORS_ENTRY_POINT = '#!/bin/sh\nexec tini -s -- spark-operator "$@"\n'


def planner_image() -> Image:
    """The planner as `spark_tasks/Dockerfile` makes it: Java, Spark, the locked dependencies, the
    code.

    Raises:
        MissingProgramError: there is no uv, which `make setup` installs.
        StepError: packages could not be installed, or Debian's Python is another one.
    """
    base = base_layers()
    require_same_python(base.python)
    parts = [part for file in _sources() for part in (str(file), (_TASKS / file).read_bytes())]
    entry_point = (_TASKS / "entrypoint.sh").read_bytes()
    locked = _LOCK.read_bytes()
    dependencies = cached_layer("planner-dependencies", _install_dependencies, locked, PYTHON)

    def make_code(content: Path) -> None:
        folder = content / "opt" / "regent"
        for file in _sources():
            (folder / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(_TASKS / file, folder / file)
        write_program(content / "opt" / "entrypoint.sh", (_TASKS / "entrypoint.sh").read_text())
        # Hadoop wants a name of the user
        (content / "etc").mkdir()
        users = _read_member(base.python, "./etc/passwd")
        (content / "etc" / "passwd").write_text(f"{users}spark:x:{_USER}:{_GROUP}::/tmp:/bin/sh\n")
        _compile_ahead(content, [base.python, dependencies])

    below = (dependencies.parent.name, base.python.parent.name)
    code = cached_layer("planner", make_code, *parts, entry_point, *below)
    return Image(
        f"localhost/regent-planner:{content_hash(*parts, entry_point, *below)}",
        [base.python, base.java, dependencies, code],
        PLANNER_CONFIG,
    )


def spark_operator_image(planner: Image) -> Image:
    """The Spark operator, which submits with the Spark of an image."""
    program = node_binaries().path("spark-operator").resolve()

    def make(content: Path) -> None:
        programs = content / "usr" / "local" / "bin"
        programs.mkdir(parents=True)
        shutil.copy(program, programs / "spark-operator")
        write_program(programs / "spark-operator-entrypoint", _OPERATORS_ENTRY_POINT)

    parts = (program.read_bytes(), _OPERATORS_ENTRY_POINT)
    layer = cached_layer("spark-operator", make, *parts)
    return Image(
        f"localhost/spark-operator:{content_hash(planner.tag, *parts)}",
        [*planner.layers, layer],
        {**planner.config, "Entrypoint": ["spark-operator-entrypoint"]},
    )


def _install_dependencies(content: Path) -> None:
    make_venv(content, _VENV)
    uv_install(content, _VENV, "--require-hashes", "--requirement", _LOCK)
    home = content / _VENV / "lib" / PYTHON / "site-packages" / "pyspark"
    (home / "RELEASE").touch()
    (content / "opt" / "spark").symlink_to(f"/{home.relative_to(content)}")


def _compile_ahead(content: Path, layers: Sequence[Path]) -> None:
    """What is compiled can be added to by the image's user, whose group it is: Numba reads no
    cache that it could not write."""
    folder = content / "opt" / "numba"
    folder.mkdir()
    run_inside(
        "compiling the planner's search",
        layers,
        content,
        ["python3", "-m", "regent_rebalance.compile_ahead"],
        variables=PLANNER_CONFIG["Env"],
        typically="half a minute",
    )
    for path in (folder, *folder.rglob("*")):
        path.chmod(path.stat().st_mode | 0o020)


def _sources() -> list[Path]:
    """The planner's files, relative to their folder."""
    found = [_TASKS / "plan_on_spark.py", *(_TASKS / "regent_rebalance").rglob("*")]
    files = [path for path in found if path.is_file() and "__pycache__" not in path.parts]
    return sorted(path.relative_to(_TASKS) for path in files)


def _read_member(archive: Path, name: str) -> str:
    with tarfile.open(archive) as tar:
        file = tar.extractfile(name)
        assert file is not None, f"{name} is a file"
        return file.read().decode()

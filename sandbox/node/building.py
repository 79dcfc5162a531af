"""How layers are made: cached by all that decides their content, with Python packages by uv."""

import inspect
import shutil
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path

from sandbox.caching import cached, content_hash
from sandbox.errors import MissingProgramError, StepError
from sandbox.node.layers import write_layer
from sandbox.progress import run_step

ROOT = Path(__file__).resolve().parents[2]
PYTHON = f"python{sys.version_info.major}.{sys.version_info.minor}"
_SOURCES = ("operator/regent", "spark_tasks/regent_rebalance")


def cached_layer(name: str, make: Callable[[Path], None], *parts: str | bytes) -> Path:
    """A layer out of the cache, or of the files that `make` puts into an empty directory."""

    def write(directory: Path) -> None:
        content = directory / "content"
        content.mkdir()
        make(content)
        write_layer(directory / "layer.tar", content)
        shutil.rmtree(content)

    recipe = (Path(__file__).read_bytes(), inspect.getsource(make))
    return cached(f"layers/{name}-{content_hash(*recipe, *parts)}", write) / "layer.tar"


def make_venv(content: Path, venv: str) -> None:
    """A virtual environment whose interpreter is Debian's."""
    programs = content / venv / "bin"
    programs.mkdir(parents=True)
    for name in ("python", "python3"):
        (programs / name).symlink_to("/usr/bin/python3")
    configuration = "home = /usr/bin\ninclude-system-site-packages = false\n"
    (content / venv / "pyvenv.cfg").write_text(configuration)


def install_code(content: Path, venv: str) -> None:
    """Regent's own code, without what it depends on."""
    uv_install(content, venv, "--no-deps", ROOT)


def uv_install(content: Path, venv: str, *what: str | Path) -> None:
    """Install packages, compiled, into the virtual environment of a layer.

    Raises:
        MissingProgramError: there is no uv, which `make setup` installs.
        StepError: they could not be installed.
    """
    target = content / venv / "lib" / PYTHON / "site-packages"
    shown = " ".join(str(part) for part in what)
    run_step(
        f"installing packages for an image ({shown})",
        [
            *(_uv(), "pip", "install", "--python", sys.executable, "--compile-bytecode"),
            *("--link-mode", "copy", "--target", target, *what),
        ],
        directory=ROOT,
        typically="half a minute",
    )
    # programs of the packages name the interpreter of this machine
    shutil.rmtree(target / "bin", ignore_errors=True)


def _uv() -> Path:
    found = shutil.which("uv")
    own = ROOT / ".tools" / "uv" / "bin" / "uv"
    if found is None and not own.exists():
        raise MissingProgramError("uv: not found; `make setup` installs it into .tools")
    return own if found is None else Path(found)


def require_same_python(layer: Path) -> None:
    """What is compiled for one version of Python cannot be imported by another one."""
    with tarfile.open(layer) as tar:
        names = tar.getnames()
    if f"./usr/bin/{PYTHON}" not in names:
        raise StepError(
            f"the image's Debian has no {PYTHON}, with which its dependencies are installed here: "
            "run the sandbox with the Python that this machine's own packages have"
        )


def code_parts() -> list[str | bytes]:
    """What decides the content of a layer with Regent's code: names and contents of files."""
    sources = [ROOT / "pyproject.toml", ROOT / "README.md", ROOT / "LICENSE", *_operator_files()]
    return [part for file in sources for part in (_name(file), file.read_bytes())]


def _operator_files() -> list[Path]:
    found = [path for source in _SOURCES for path in (ROOT / source).rglob("*")]
    return sorted(path for path in found if path.is_file() and "__pycache__" not in path.parts)


def _name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def write_program(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(0o755)

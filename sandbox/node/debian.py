"""Debian packages without installing them: unpacked into the cache, or as the layers of images.

Everything comes from where apt of this machine is set up to get packages, for the machine's own
release. apt keeps its lists in a directory of the step, so nothing on the machine changes.
"""

import os
import platform
import tempfile
from pathlib import Path

from sandbox.caching import cached, content_hash
from sandbox.errors import StepError
from sandbox.progress import run_step

_TOOLS = (
    "containerd",
    "runc",
    "containernetworking-plugins",
    "iptables",
    "conntrack",
    "ipset",
    "mmdebstrap",
    # libraries of these that a small system lacks
    "libnfnetlink0",
    "libnetfilter-conntrack3",
    "libip4tc2",
    "libip6tc2",
    "libxtables12",
    "libnftnl11",
    "libmnl0",
    "libipset13",
)
_LINKS = ("iptables", "iptables-save", "iptables-restore")
_LINK_TARGET = "xtables-nft-multi"

_PYTHON = ("python3", "tini")
_JAVA = ("openjdk-17-jre-headless",)
_LEFT_OUT = (
    "path-exclude=/usr/share/doc/*",
    "path-exclude=/usr/share/locale/*",
    "path-exclude=/usr/share/man/man?/*",
)
_TAR = (
    "tar --one-file-system --numeric-owner --exclude=./dev/* --exclude=./proc/* --exclude=./sys/* "
    "--exclude=./var/lib/apt/lists/* --exclude=./var/cache/apt/* --exclude=./var/log/*"
)


def node_tools() -> Path:
    """The directory with `usr/` of containerd, runc, iptables and mmdebstrap.

    Raises:
        StepError: apt could not fetch them.
    """
    return cached(f"debian/{content_hash(_release(), *_TOOLS, *_LINKS)}", _unpack_tools)


class BaseLayers:
    """The layers of Debian under all images. Get one from `base_layers`."""

    def __init__(self, directory: Path) -> None:
        self.python = directory / "python.tar"
        self.java = directory / "java.tar"


def base_layers() -> BaseLayers:
    """A small Debian with Python, and what a Java runtime adds to it.

    Raises:
        StepError: mmdebstrap could not make them.
    """
    recipe = content_hash(_release(), *_PYTHON, *_JAVA, *_LEFT_OUT, _TAR)
    return BaseLayers(cached(f"rootfs/{recipe}", _make_layers))


def _unpack_tools(directory: Path) -> None:
    with tempfile.TemporaryDirectory(prefix="regent-sandbox-apt-") as temporary:
        state = Path(temporary)
        (state / "lists").mkdir()
        (state / "cache").mkdir()
        own = ["-o", f"Dir::State::Lists={state / 'lists'}", "-o", f"Dir::Cache={state / 'cache'}"]
        own += ["-o", "APT::Sandbox::User=root"]
        run_step("reading apt's lists", ["apt-get", *own, "update"], directory=state)
        run_step(
            "fetching containerd and other packages of a node",
            ["apt-get", *own, "download", *_TOOLS],
            directory=state,
        )
        for package in sorted(state.glob("*.deb")):
            run_step(
                f"unpacking {package.name}",
                ["dpkg", "--extract", package, directory],
                directory=state,
            )
    for name in (*_LINKS, *(f"ip6{link.removeprefix('ip')}" for link in _LINKS)):
        (directory / "usr" / "sbin" / name).symlink_to(_LINK_TARGET)


def _make_layers(directory: Path) -> None:
    tools = node_tools()
    sources = directory / "sources.list"
    sources.write_text(_sources(directory))
    layers = BaseLayers(directory)
    stamp = directory / "python-is-complete"
    # what is there so far is the first layer; what is newer than the stamp is the second one
    first = f'cd "$1" && {_TAR} -cf {layers.python} . && touch {stamp} && sleep 1'
    java = (
        'APT_CONFIG="$MMDEBSTRAP_APT_CONFIG" apt-get --yes install '
        f'-oDPkg::Chroot-Directory="$1" {" ".join(_JAVA)}'
    )
    second = f'cd "$1" && {_TAR} --newer={stamp} -cf {layers.java} .'
    run_step(
        "making the layers of Debian under all images",
        [
            "mmdebstrap",
            "--mode=root",
            "--variant=minbase",
            f"--include={','.join(_PYTHON)}",
            '--aptopt=Apt::Install-Recommends "false"',
            *(f"--dpkgopt={option}" for option in _LEFT_OUT),
            # Java's package makes links there
            '--essential-hook=mkdir -p "$1/usr/share/man/man1"',
            *(f"--customize-hook={hook}" for hook in (first, java, second)),
            _codename(),
            "/dev/null",
            sources,
        ],
        directory=directory,
        environment={"PATH": f"{tools / 'usr' / 'bin'}:{os.environ['PATH']}"},
        typically="1 to 3 minutes",
    )
    stamp.unlink()
    sources.unlink()


def _sources(directory: Path) -> str:
    """The machine's own sources of its own release, in the form of sources.list."""
    line = "deb $(REPO_URI) $(RELEASE) $(COMPONENT)"
    listed = run_step(
        "looking where this machine gets packages from",
        ["apt-get", "indextargets", "--format", line, "Created-By: Packages"],
        directory=directory,
    )
    codename = _codename()
    lines = [each for each in listed.splitlines() if each.split()[2].startswith(codename)]
    if not lines:
        raise StepError(
            f"apt of this machine has no source for its own release, {codename}; "
            f"it has these:\n{listed}"
        )
    return "".join(f"{each}\n" for each in dict.fromkeys(lines))


def _codename() -> str:
    """Of the machine's release, such as bookworm."""
    return platform.freedesktop_os_release()["VERSION_CODENAME"]


def _release() -> str:
    return f"{platform.freedesktop_os_release()['ID']} {_codename()}"

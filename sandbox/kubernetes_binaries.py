"""Builds the programs of Kubernetes from their sources.

These are not shipped as packages, so the Go module in `sandbox/kubernetes/` pins them and this
builds them: one binary for those that share most of their code (which one runs is chosen by the
name it is called by, so the rest are symbolic links). A result is cached under a hash of the
module's files, the sources it is built from, the build flags and the Go version.

There are two results. `kubernetes_binaries` is all that a Kubernetes API needs; `node_binaries` is
what a node needs beside it, and is built by those only who start one. They pin the same versions
of everything, so that the second build finds most of its packages compiled.
"""

import os
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from sandbox.caching import cached, content_hash, find_entry
from sandbox.programs import GO, find, require
from sandbox.progress import run_step

MODULE_DIRECTORY = Path(__file__).parent / "kubernetes"
SPARK_OPERATOR = "github.com/kubeflow/spark-operator/v2"
SPARK_OPERATOR_CHART = "spark-operator-chart"

_ENVIRONMENT = {
    "CGO_ENABLED": "0",
    "GOFLAGS": "-trimpath -mod=readonly -buildvcs=false",
    "GOTOOLCHAIN": "local",
    "GOGC": "off",  # a tenth less processor time, at 4 GB of memory
}
_COMPILER_FLAGS = "all=-dwarf=false"


class KubernetesBinaries:
    """Where built programs are. Get one from `kubernetes_binaries` or `node_binaries`."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def path(self, command: str) -> Path:
        """The program of this name."""
        return self.directory / command


@dataclass(frozen=True, slots=True)
class GoBuild:
    """Programs that are built together: one entry of the cache.

    Attributes:
        kind: Where in the cache.
        what: What is built, for people.
        own: Packages of the module; the sources are directories of the same name.
        others: Packages, or patterns of the go command, of other modules.
        links: Names under which a program is called, and its file.
        charts: Folders of other modules that are kept beside the programs: name to module, path.
        typically: How long it takes, for people.
    """

    kind: str
    what: str
    own: Sequence[str]
    others: Sequence[str]
    links: Mapping[str, str]
    typically: str
    charts: Mapping[str, tuple[str, str]] = field(default_factory=dict)

    @property
    def entry_name(self) -> str:
        """Its name in the cache."""
        sources = sorted(file for own in self.own for file in (MODULE_DIRECTORY / own).glob("*.go"))
        files = [MODULE_DIRECTORY / "go.mod", MODULE_DIRECTORY / "go.sum", *sources]
        parts = [part for file in files for part in (file.name, file.read_bytes())]
        flags = (_COMPILER_FLAGS, _linker_flags(), str(find(GO).version))
        wanted = repr((self.own, self.others, self.links, self.charts))
        return f"{self.kind}/{content_hash(*parts, *flags, wanted)}"

    def built(self) -> KubernetesBinaries:
        """The programs, built when they are not in the cache."""
        require(GO)
        return KubernetesBinaries(cached(self.entry_name, self._build))

    def found(self) -> KubernetesBinaries | None:
        """The programs if they have been built already."""
        path = find_entry(self.entry_name)
        return None if path is None else KubernetesBinaries(path)

    def _build(self, directory: Path) -> None:
        flags = ["-gcflags", _COMPILER_FLAGS, "-ldflags", _linker_flags()]
        packages = [*(f"./{own}" for own in self.own), *self.others]
        run_step(
            f"building {self.what}",
            ["go", "build", "-v", *flags, "-o", f"{directory}{os.sep}", *packages],
            directory=MODULE_DIRECTORY,
            environment=_ENVIRONMENT,
            typically=self.typically,
        )
        for name, file in self.links.items():
            (directory / name).symlink_to(file)
        for name, (module, path) in self.charts.items():
            shutil.copytree(_module_directory(module) / path, directory / name)


API_BUILD = GoBuild(
    kind="kubernetes",
    what="etcd, kube-apiserver, kube-controller-manager, kubectl and helm",
    own=("kube",),
    others=("helm.sh/helm/v3/cmd/helm",),
    links=dict.fromkeys(("etcd", "kube-apiserver", "kube-controller-manager", "kubectl"), "kube"),
    typically="3 to 7 minutes on two cores, seconds with a warm Go cache",
)
NODE_BUILD = GoBuild(
    kind="kubernetes-node",
    what="kubelet, kube-scheduler, kube-proxy, CoreDNS and the Spark operator",
    own=("node", "coredns", "pause"),
    others=(f"{SPARK_OPERATOR}/cmd/operator",),
    links={
        **dict.fromkeys(("kubelet", "kube-scheduler", "kube-proxy"), "node"),
        "spark-operator": "operator",
    },
    typically="2 minutes on two cores after the API's build",
    charts={SPARK_OPERATOR_CHART: (SPARK_OPERATOR, "charts/spark-operator-chart")},
)


def kubernetes_binaries() -> KubernetesBinaries:
    """etcd, kube-apiserver, kube-controller-manager, kubectl and helm, built when they are not in
    the cache (minutes the first time).

    Raises:
        MissingProgramError: there is no Go, or one that is too old.
        StepError: the build failed.
    """
    return API_BUILD.built()


def find_kubernetes_binaries() -> KubernetesBinaries | None:
    """These programs if they have been built already."""
    return API_BUILD.found()


def node_binaries() -> KubernetesBinaries:
    """kubelet, kube-scheduler, kube-proxy, coredns, pause and spark-operator, built when they are
    not in the cache; beside them the Spark operator's chart, `SPARK_OPERATOR_CHART`.

    Raises:
        MissingProgramError, StepError: as for `kubernetes_binaries`.
    """
    return NODE_BUILD.built()


def find_node_binaries() -> KubernetesBinaries | None:
    """These programs if they have been built already."""
    return NODE_BUILD.found()


def _module_directory(module: str) -> Path:
    """Where the go command keeps the sources of a module."""
    output = run_step(
        f"looking for the sources of {module}",
        ["go", "list", "-m", "-f", "{{.Dir}}", module],
        directory=MODULE_DIRECTORY,
        environment=_ENVIRONMENT,
    )
    return Path(output.strip())


def _linker_flags() -> str:
    """Without these the programs call themselves v0.0.0, which fails charts' version checks."""
    kubernetes = _required_version("k8s.io/kubernetes")
    major, minor, _patch = kubernetes.removeprefix("v").split(".")
    values = {
        "gitVersion": kubernetes,
        "gitMajor": major,
        "gitMinor": minor,
        "gitTreeState": "clean",
        "gitCommit": "0" * 40,
        "buildDate": "2026-01-01T00:00:00Z",
    }
    settings = [
        f"-X {package}.{name}={value}"
        for package in ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version")
        for name, value in values.items()
    ]
    helm = _required_version("helm.sh/helm/v3")
    settings.append(f"-X helm.sh/helm/v3/internal/version.version={helm}")
    return " ".join(["-s", "-w", *settings])


def _required_version(module: str) -> str:
    """The version of a module that go.mod asks for."""
    text = (MODULE_DIRECTORY / "go.mod").read_text()
    match = re.search(rf"^\s*{re.escape(module)} (v\S+)", text, flags=re.MULTILINE)
    if match is None:
        raise ValueError(f"{MODULE_DIRECTORY / 'go.mod'} does not require {module}")
    return match[1]

"""The demo's place in Kubernetes: an API server of its own, or a namespace in the user's cluster.

The user's cluster is handed back as it was. Everything happens in a namespace with a generated
name, which is the only one that the demo's Regent serves; what exists is never changed; what is
created is removed at the end.
"""

import json
import os
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from sandbox.errors import CommandError, SandboxError
from sandbox.kubernetes_api import KubernetesApi
from sandbox.kubernetes_binaries import kubernetes_binaries
from sandbox.process import run_guarded
from sandbox.progress import note

DEFINITIONS = Path(__file__).resolve().parent.parent / "crds"
_KUBECTL_TIMEOUT_S = 180.0
_PROBE = "is-anybody-serving"


class ClusterInUseError(SandboxError):
    """The user's cluster contains something that the demo would have to change, or that would
    interfere with it."""


class Kubectl:
    """kubectl with one kubeconfig, in one namespace unless the arguments name another one."""

    def __init__(self, kubeconfig: Path | str, *, namespace: str = "default") -> None:
        self.kubeconfig = kubeconfig
        self.namespace = namespace
        self.program = kubernetes_binaries().path("kubectl")

    def __call__(self, *arguments: str | Path, stdin: str | None = None) -> str:
        outcome = run_guarded(
            [self.program, "--namespace", self.namespace, *arguments],
            stdin=stdin,
            environment={"KUBECONFIG": str(self.kubeconfig)},
            timeout_s=_KUBECTL_TIMEOUT_S,
        )
        if outcome.exit_code != 0:
            shown = " ".join(str(argument) for argument in arguments)
            raise CommandError(f"kubectl {shown} failed ({outcome.exit_code}):\n{outcome.stderr}")
        return outcome.stdout

    def json(self, *arguments: str | Path, stdin: str | None = None) -> dict[str, Any]:
        """The object that a command prints; empty if it prints none."""
        output = self(*arguments, "--output=json", stdin=stdin)
        found: dict[str, Any] = json.loads(output) if output.strip() else {}
        return found


def own_cluster(stack: ExitStack) -> Kubectl:
    """A Kubernetes API for the demo alone; it ends with the stack."""
    kubernetes_binaries()
    note("starting a Kubernetes API (etcd and kube-apiserver)")
    kubectl = Kubectl(stack.enter_context(KubernetesApi()).kubeconfig)
    for file in sorted(DEFINITIONS.glob("*.yaml")):
        _create_definition(kubectl, file)
    return kubectl


def borrowed_cluster(stack: ExitStack, kubeconfig: str) -> Kubectl:
    """A namespace in the user's cluster; the stack removes it, and the definitions if they are new.

    Args:
        kubeconfig: Files as in ``KUBECONFIG``.

    Raises:
        ClusterInUseError: There is a Regent in the cluster, or another version of the definitions.
    """
    files = [str(Path(file).expanduser().resolve()) for file in kubeconfig.split(os.pathsep)]
    kubectl = Kubectl(os.pathsep.join(files))
    context = kubectl("config", "current-context").strip()
    note(f"using the Kubernetes API of {kubeconfig}: {context}")
    _refuse_deployments(kubectl)
    missing = [file for file in sorted(DEFINITIONS.glob("*.yaml")) if _is_missing(kubectl, file)]
    for file in missing:
        stack.callback(_remove_definition, kubectl, file)
        _create_definition(kubectl, file)
    namespace = kubectl.json("create", "--filename=-", stdin=_namespace())["metadata"]["name"]
    inside = Kubectl(kubectl.kubeconfig, namespace=namespace)
    stack.callback(_remove_namespace, inside)
    note(f"everything happens in the namespace {namespace}, which is removed at the end")
    inside("create", "--filename=-", stdin=_probe())
    return inside


def refuse_if_served(kubectl: Kubectl) -> None:
    """Look whether a Regent has reacted to the probe, which is in the namespace from its start on.

    Called as late as possible, before a Regent of the demo's own starts.

    Raises:
        ClusterInUseError: One has.
    """
    if kubectl.json("get", "ktopic", _PROBE).get("status"):
        raise ClusterInUseError(
            "a Regent serves all namespaces of this Kubernetes cluster already: it would create "
            "the demo's topic in its Kafka cluster. Restrict it to namespaces of its own, stop it, "
            "or unset KUBECONFIG: then the demo starts a Kubernetes API of its own"
        )
    kubectl("delete", "ktopic", _PROBE)


def _refuse_deployments(kubectl: Kubectl) -> None:
    """A Regent that is about to start does not react to a probe."""
    selector = "app.kubernetes.io/name=regent"
    items = kubectl.json("get", "deployments", "--all-namespaces", "--selector", selector)["items"]
    for item in items:
        if item["spec"].get("replicas", 1):
            where = f"{item['metadata']['namespace']}/{item['metadata']['name']}"
            raise ClusterInUseError(
                f"a Regent is installed in this Kubernetes cluster (Deployment {where}); two of "
                "them could serve the same KafkaTopics. Scale it to 0, or unset KUBECONFIG: then "
                "the demo starts a Kubernetes API of its own"
            )


def _is_missing(kubectl: Kubectl, file: Path) -> bool:
    """Whether a definition does not exist.

    Raises:
        ClusterInUseError: There is one, but it is not the same.
    """
    existing = kubectl.json("get", "--ignore-not-found", "--filename", file)
    if not existing:
        return True
    ours = kubectl.json("replace", "--dry-run=server", "--filename", file)
    if existing["spec"] != ours["spec"]:
        raise ClusterInUseError(
            f"this Kubernetes cluster has another version of the CustomResourceDefinition "
            f"{existing['metadata']['name']}, which the demo does not overwrite. Use another "
            "cluster, or unset KUBECONFIG: then the demo starts a Kubernetes API of its own"
        )
    return False


def _create_definition(kubectl: Kubectl, file: Path) -> None:
    kubectl("create", "--filename", file)
    kubectl("wait", "--for=condition=Established", "--timeout=180s", "--filename", file)


def _remove_definition(kubectl: Kubectl, file: Path) -> None:
    """Remove what the demo created, unless somebody has begun to use it."""
    definition = kubectl.json("get", "--ignore-not-found", "--filename", file)
    if not definition:
        return
    name = definition["metadata"]["name"]
    others = kubectl.json("get", name, "--all-namespaces")["items"]
    if any(not item["metadata"].get("deletionTimestamp") for item in others):
        note(f"the CustomResourceDefinition {name} stays: there are resources of its kind")
        return
    kubectl("delete", "--wait=false", "--filename", file)


def _remove_namespace(kubectl: Kubectl) -> None:
    """Remove the namespace; without Regent a finalizer stays on what is left in it."""
    for item in kubectl.json("get", "ktopic")["items"]:
        finalizers = '{"metadata":{"finalizers":null}}'
        kubectl("patch", "ktopic", item["metadata"]["name"], "--type=merge", "-p", finalizers)
    kubectl("delete", "ktopic", "--all")
    kubectl("delete", "namespace", kubectl.namespace, "--wait=false")


def _namespace() -> str:
    metadata = {"generateName": "regent-demo-"}
    return json.dumps({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})


def _probe() -> str:
    """A KafkaTopic that makes a Regent write a status, and nothing to Kafka."""
    return json.dumps(
        {
            "apiVersion": "kafka.regent.dev/v1alpha1",
            "kind": "KafkaTopic",
            "metadata": {"name": _PROBE},
            "spec": {"partitions": 1, "replicas": 1, "managementPolicy": "Observe"},
        }
    )

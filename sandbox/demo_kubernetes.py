"""The demo's place in Kubernetes: an API server of its own, or a namespace in the user's cluster.

The user's cluster is handed back as it was. Everything happens in a namespace with a name that is
drawn, which is the only one that the demo's Regent serves; what exists is never changed. What is
created has a label, and its removal is certain before it is created, whenever the demo is
interrupted. Nothing without the label is removed.
"""

import contextlib
import json
import os
import secrets
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import yaml

from sandbox.definitions import wait_until_established
from sandbox.errors import CommandError, SandboxError
from sandbox.kubernetes_api import KubernetesApi
from sandbox.kubernetes_binaries import kubernetes_binaries
from sandbox.process import run_guarded
from sandbox.progress import note

DEFINITIONS = Path(__file__).resolve().parent.parent / "crds"
_KUBECTL_TIMEOUT_S = 180.0
_PROBE = "is-anybody-serving"
_UNOBSERVED = -1
"""``observedGeneration`` of a status that the definition supplies, not a Regent."""

_GROUP = "kafka.regent.dev"
_LABEL = f"{_GROUP}/demo"
"""Of a namespace it says which demo's it is."""


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
        shown = " ".join(str(argument) for argument in arguments)
        try:
            outcome = run_guarded(
                [self.program, "--namespace", self.namespace, *arguments],
                stdin=stdin,
                environment={"KUBECONFIG": str(self.kubeconfig)},
                timeout_s=_KUBECTL_TIMEOUT_S,
            )
        except TimeoutError as error:
            raise CommandError(f"kubectl {shown}: {error}") from error
        if outcome.exit_code != 0:
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
    """A namespace in the user's cluster; the stack removes it, and definitions that demos made.

    Args:
        kubeconfig: Files as in ``KUBECONFIG``.

    Raises:
        ClusterInUseError: There is a Regent in the cluster, or another version of the definitions.
        CommandError: A right is missing, without which something would be left behind.
    """
    given = [file for file in kubeconfig.split(os.pathsep) if file]
    files = [str(Path(file).expanduser().resolve()) for file in given]
    kubectl = Kubectl(os.pathsep.join(files))
    context = kubectl("config", "current-context").strip()
    note(f"using the Kubernetes API of {kubeconfig}: {context}")
    _refuse_deployments(kubectl)
    definitions = {file: _definition(kubectl, file) for file in sorted(DEFINITIONS.glob("*.yaml"))}
    missing = [file for file, existing in definitions.items() if existing is None]
    _require_rights(kubectl, with_definitions=bool(missing))
    namespace, token = f"regent-demo-{secrets.token_hex(4)}", secrets.token_hex(8)
    for file, existing in definitions.items():
        if existing is None or _LABEL in _labels(existing):
            stack.callback(_remove_definition, kubectl, file)
    for file in missing:
        _create_definition(kubectl, file)
    inside = Kubectl(kubectl.kubeconfig, namespace=namespace)
    stack.callback(_remove_namespace, inside, token)
    kubectl("create", "--filename=-", stdin=_namespace(namespace, token))
    note(f"everything happens in the namespace {namespace}, which is removed at the end")
    inside("create", "--filename=-", stdin=_probe())
    return inside


def refuse_if_served(kubectl: Kubectl) -> None:
    """Check whether a Regent has written a status of the probe, which is the first object of the
    namespace.

    Called as late as possible, before a Regent of the demo's own starts.

    Raises:
        ClusterInUseError: One has.
    """
    status = kubectl.json("get", "ktopic", _PROBE).get("status", {})
    if status.get("observedGeneration", _UNOBSERVED) != _UNOBSERVED:
        raise ClusterInUseError(
            "a Regent serves all namespaces of this Kubernetes cluster already: it would create "
            "the demo's topic in its Kafka cluster. Restrict it to namespaces of its own, stop it, "
            "or unset KUBECONFIG: then the demo starts a Kubernetes API of its own"
        )
    kubectl("delete", "ktopic", _PROBE)


def _refuse_deployments(kubectl: Kubectl) -> None:
    """A Regent that is about to start does not react to a probe."""
    where = _installed_regent(kubectl)
    if where is not None:
        raise ClusterInUseError(
            f"a Regent is installed in this Kubernetes cluster (Deployment {where}); two of "
            "them could serve the same KafkaTopics. Scale it to 0, or unset KUBECONFIG: then "
            "the demo starts a Kubernetes API of its own"
        )


def _installed_regent(kubectl: Kubectl) -> str | None:
    """The Deployment of a Regent that runs, or is to."""
    selector = "app.kubernetes.io/name=regent"
    items = kubectl.json("get", "deployments", "--all-namespaces", "--selector", selector)["items"]
    running = (item["metadata"] for item in items if item["spec"].get("replicas", 1))
    return next((f"{found['namespace']}/{found['name']}" for found in running), None)


def _require_rights(kubectl: Kubectl, *, with_definitions: bool) -> None:
    """Before anything is created: whoever may create and not delete would leave it behind."""
    needed = [(verb, "", "namespaces") for verb in ("create", "delete")]
    needed += [(verb, _GROUP, "kafkatopics") for verb in ("create", "patch", "delete")]
    if with_definitions:
        group = "apiextensions.k8s.io"
        needed += [(verb, group, "customresourcedefinitions") for verb in ("create", "delete")]
    lacking = [
        f"{verb} {resource}"
        for verb, group, resource in needed
        if not _may(kubectl, verb, group, resource)
    ]
    if lacking:
        raise CommandError(
            f"the user of this kubeconfig has no right to {', '.join(lacking)}, which the demo "
            "needs to make a namespace of its own and to remove it. Use a kubeconfig that has "
            "these rights, or unset KUBECONFIG: then the demo starts a Kubernetes API of its own"
        )


def _may(kubectl: Kubectl, verb: str, group: str, resource: str) -> bool:
    """Whether the user has a right in all namespaces."""
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": {"verb": verb, "group": group, "resource": resource}},
    }
    answer = kubectl.json("create", "--filename=-", stdin=json.dumps(review))
    return bool(answer["status"]["allowed"])


def _definition(kubectl: Kubectl, file: Path) -> dict[str, Any] | None:
    """A definition as it is in the cluster; None if it is missing.

    Raises:
        ClusterInUseError: There is one, but it is not the same, or is about to go.
    """
    existing = kubectl.json("get", "--ignore-not-found", "--filename", file)
    if not existing:
        return None
    name = existing["metadata"]["name"]
    if existing["metadata"].get("deletionTimestamp"):
        raise ClusterInUseError(
            f"the CustomResourceDefinition {name} is being deleted from this Kubernetes cluster. "
            "Try again when it is gone, or unset KUBECONFIG: then the demo starts a Kubernetes "
            "API of its own"
        )
    ours = kubectl.json("replace", "--dry-run=server", "--filename", file)
    if existing["spec"] != ours["spec"]:
        raise ClusterInUseError(
            f"this Kubernetes cluster has another version of the CustomResourceDefinition "
            f"{name}, which the demo does not overwrite. Use another "
            "cluster, or unset KUBECONFIG: then the demo starts a Kubernetes API of its own"
        )
    return existing


def _create_definition(kubectl: Kubectl, file: Path) -> None:
    definition = yaml.safe_load(file.read_text(encoding="utf-8"))
    definition["metadata"].setdefault("labels", {})[_LABEL] = "definition"
    kubectl("create", "--filename=-", stdin=json.dumps(definition))
    wait_until_established(kubectl, "--filename", file)


def _remove_definition(kubectl: Kubectl, file: Path) -> None:
    """Remove what a demo has made, unless somebody uses it: the last of several demos does."""
    with _naming_what_is_left(f"the CustomResourceDefinition in {file.name}"):
        definition = kubectl.json("get", "--ignore-not-found", "--filename", file)
        if not definition or _LABEL not in _labels(definition):
            return
        name = definition["metadata"]["name"]
        user = _user_of(kubectl, name)
        if user is not None:
            note(f"the CustomResourceDefinition {name} stays: {user}")
            return
        kubectl("delete", "--wait=false", "--ignore-not-found", "--filename", file)


def _user_of(kubectl: Kubectl, definition: str) -> str | None:
    """Why a definition is needed, if it is."""
    if _live(kubectl.json("get", definition, "--all-namespaces")["items"]):
        return "there are resources of its kind"
    if _live(kubectl.json("get", "namespaces", "--selector", _LABEL)["items"]):
        return "there is the namespace of another demo"
    where = _installed_regent(kubectl)
    return None if where is None else f"a Regent is installed (Deployment {where})"


def _live(items: Sequence[dict[str, Any]]) -> bool:
    """Whether one of these objects is not about to go."""
    return any(not item["metadata"].get("deletionTimestamp") for item in items)


def _remove_namespace(kubectl: Kubectl, token: str) -> None:
    """Remove the demo's namespace; without Regent a finalizer stays on what is left in it."""
    name = kubectl.namespace
    with _naming_what_is_left(f"the namespace {name}"):
        found = kubectl.json("get", "namespace", name, "--ignore-not-found")
        if not found or _labels(found).get(_LABEL) != token:
            return
        try:
            _remove_topics(kubectl)
        finally:
            kubectl("delete", "namespace", name, "--wait=false", "--ignore-not-found")


def _remove_topics(kubectl: Kubectl) -> None:
    try:
        items = kubectl.json("get", "ktopic")["items"]
    except CommandError as error:
        if "the server doesn't have a resource type" in str(error):
            return  # somebody has removed the definition, and the topics with it
        raise
    for item in items:
        finalizers = '{"metadata":{"finalizers":null}}'
        kubectl("patch", "ktopic", item["metadata"]["name"], "--type=merge", "-p", finalizers)
    kubectl("delete", "ktopic", "--all")


@contextlib.contextmanager
def _naming_what_is_left(what: str) -> Iterator[None]:
    try:
        yield
    except CommandError as error:
        raise CommandError(
            f"{what} may be left in the Kubernetes cluster; remove it by hand:\n{error}"
        ) from error


def _labels(item: dict[str, Any]) -> dict[str, str]:
    labels: dict[str, str] = item["metadata"].get("labels", {})
    return labels


def _namespace(name: str, token: str) -> str:
    metadata = {"name": name, "labels": {_LABEL: token}}
    return json.dumps({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})


def _probe() -> str:
    """A KafkaTopic that makes a Regent write a status, and nothing to Kafka."""
    return json.dumps(
        {
            "apiVersion": f"{_GROUP}/v1alpha1",
            "kind": "KafkaTopic",
            "metadata": {"name": _PROBE},
            "spec": {"partitions": 1, "replicas": 1, "managementPolicy": "Observe"},
        }
    )

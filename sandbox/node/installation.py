"""Kafka and Regent on a node, as the page for kind has them: `kubectl apply`, `helm install`."""

import json
from pathlib import Path
from typing import Any

from sandbox.kubernetes_binaries import SPARK_OPERATOR_CHART, node_binaries
from sandbox.node.building import ROOT
from sandbox.node.cluster import NodeCluster
from sandbox.node.images import kafka_image, regent_image, zookeeper_image
from sandbox.node.layers import Image
from sandbox.node.planner import spark_operator_image
from sandbox.waiting import wait_until

CHART = ROOT / "charts" / "regent"
KAFKA_MANIFESTS = ROOT / "examples" / "node"
STATEFUL_SETS = ("zookeeper", "kafka-a", "kafka-b", "kafka-c")
BROKER_PODS = {1: "kafka-a-0", 2: "kafka-b-0", 3: "kafka-c-0"}
BOOTSTRAP_SERVERS = "kafka-a-0.kafka:9092"
_START_TIMEOUT_S = 300.0
_ELECTED = "successfully elected as the controller"


class KafkaPods:
    """ZooKeeper and three brokers in a namespace of a cluster."""

    def __init__(self, cluster: NodeCluster, *, namespace: str = "kafka") -> None:
        self.cluster = cluster
        self.namespace = namespace

    def deploy(self) -> None:
        """Bring the images, create everything, and wait until all of it is ready."""
        self.cluster.load(zookeeper_image(), kafka_image())
        self.cluster.kubectl("create", "namespace", self.namespace)
        self.kubectl("apply", "-k", KAFKA_MANIFESTS)
        for name in STATEFUL_SETS:
            self.kubectl(
                *("rollout", "status", f"statefulset/{name}", f"--timeout={_START_TIMEOUT_S}s"),
                timeout_s=_START_TIMEOUT_S + 30,
            )

    def kubectl(
        self, *arguments: str | Path, stdin: str | None = None, timeout_s: float = 180.0
    ) -> str:
        """kubectl in the namespace."""
        return self.cluster.kubectl(
            "--namespace", self.namespace, *arguments, stdin=stdin, timeout_s=timeout_s
        )

    def tool(self, name: str, *arguments: str, stdin: str | None = None) -> str:
        """Run one of Kafka's tools in the pod of a broker."""
        return self.kubectl(
            *("exec", "--stdin", BROKER_PODS[1], "--", name),
            *("--bootstrap-server", BOOTSTRAP_SERVERS, *arguments),
            stdin=stdin,
        )

    def elections_of_brokers(self) -> dict[int, int]:
        """How often each broker has become the controller since it started, by its own log."""
        return {
            broker: self.kubectl("logs", pod).count(_ELECTED) for broker, pod in BROKER_PODS.items()
        }

    def service_port(self, name: str, port: int) -> int:
        """A port of loopback that leads to a Service."""
        address = self.kubectl("get", "service", name, "--output=jsonpath={.spec.clusterIP}")
        return self.cluster.forward(address, port)


class RegentRelease:
    """A release of Regent's chart in a namespace that holds pods to the restricted standard.

    It serves custom resources in the namespace of Kafka, and has rights there only.
    """

    def __init__(self, kafka: KafkaPods, *, namespace: str = "regent") -> None:
        self.cluster = kafka.cluster
        self.namespace = namespace
        self._served = kafka.namespace

    def install(self, **values: object) -> None:
        """Bring the image, and install the chart: two replicas that know each other."""
        image = regent_image()
        self.cluster.load(image)
        self.cluster.kubectl("create", "namespace", self.namespace)
        self.cluster.kubectl(
            "label", "namespace", self.namespace, "pod-security.kubernetes.io/enforce=restricted"
        )
        chosen = {
            "zookeeper": f"zookeeper.{self._served}:2181",
            "namespaces": [self._served],
            "image": {"repository": image.repository, "tag": image.tag, "pullPolicy": "Never"},
        }
        self._helm("install", CHART, *_as_arguments(chosen | values))

    def upgrade(self, **values: object) -> None:
        """Change some values and wait until all pods have been replaced."""
        self._helm("upgrade", CHART, "--reuse-values", *_as_arguments(values))

    def uninstall(self) -> None:
        """Remove the release."""
        self._helm("uninstall")

    def kill(self, pod: str) -> None:
        """End Regent in a pod at once, by SIGKILL; kubelet starts it again there."""
        where = "--output=jsonpath={.status.containerStatuses[0].containerID}"
        container = self.kubectl("get", "pod", pod, where).removeprefix("containerd://")
        self.cluster.run(
            *("ctr", "--namespace", "k8s.io", "tasks", "kill", "--signal", "SIGKILL", container)
        )

    def kubectl(self, *arguments: str | Path) -> str:
        """kubectl in the namespace."""
        return self.cluster.kubectl("--namespace", self.namespace, *arguments)

    def pods(self) -> list[str]:
        """The names of all pods of the release."""
        selector = "--selector=app.kubernetes.io/name=regent"
        listed = json.loads(self.kubectl("get", "pods", selector, "--output=json"))
        return [item["metadata"]["name"] for item in listed["items"]]

    def status(self, pod: str) -> dict[str, Any]:
        """What `/status` of a pod says."""
        path = f"/api/v1/namespaces/{self.namespace}/pods/{pod}:8080/proxy/status"
        status: dict[str, Any] = json.loads(self.cluster.kubectl("get", "--raw", path))
        return status

    def active(self) -> str:
        """The pod that is the controller; waited for."""
        return wait_until(
            lambda: next(iter(self._active()), None),
            timeout_s=_START_TIMEOUT_S,
            describe=f"a pod of {self.namespace} to be the controller",
        )

    def logged(self, pod: str, level: str) -> list[str]:
        """Lines of a level in the log of a pod."""
        lines = self.kubectl("logs", pod).splitlines()
        return [line for line in lines if json.loads(line)["level"] == level]

    def _active(self) -> list[str]:
        return [pod for pod in self.pods() if self.status(pod)["isActive"]]

    def _helm(self, command: str, *arguments: str | Path) -> None:
        _helm(self.cluster, command, "regent", *arguments, "--namespace", self.namespace)


class SparkOperator:
    """A release of the Spark operator's own chart, with the values that it has by itself: its
    webhook, and rights in one namespace, which exists."""

    def __init__(self, kafka: KafkaPods, *, namespace: str = "spark-operator") -> None:
        self.cluster = kafka.cluster
        self.namespace = namespace
        self._served = kafka.namespace

    def install(self, planner: Image) -> None:
        """Bring the planner's image and that of the operator, and install the chart."""
        image = spark_operator_image(planner)
        self.cluster.load(planner, image)
        values: dict[str, object] = {
            "image.registry": "localhost",
            "image.repository": image.repository.removeprefix("localhost/"),
            "image.tag": image.tag,
            "image.pullPolicy": "Never",
            "spark.jobNamespaces": [self._served],
            "spark.serviceAccount.name": "spark",
        }
        chart = node_binaries().directory / SPARK_OPERATOR_CHART
        self._helm("install", chart, "--create-namespace", *_as_arguments(values))

    def uninstall(self) -> None:
        """Remove the release; the definitions of its custom resources stay, as with any chart."""
        self._helm("uninstall")

    def _helm(self, command: str, *arguments: str | Path) -> None:
        _helm(self.cluster, command, "spark-operator", *arguments, "--namespace", self.namespace)


def _helm(cluster: NodeCluster, *arguments: str | Path) -> None:
    cluster.helm(
        *(*arguments, "--wait", "--timeout", f"{_START_TIMEOUT_S}s"),
        timeout_s=_START_TIMEOUT_S + 30,
    )


def _as_arguments(values: dict[str, object]) -> list[str]:
    return [
        argument
        for name, value in values.items()
        for argument in ("--set-json", f"{name}={json.dumps(value)}")
    ]

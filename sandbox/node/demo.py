"""`make demo-cluster`: what docs/kind.md does by hand, on the one node of the sandbox."""

import json

import yaml

from sandbox.errors import CommandError
from sandbox.node.building import ROOT
from sandbox.node.cluster import NodeCluster
from sandbox.node.installation import KafkaPods, RegentRelease, SparkOperator
from sandbox.node.layers import Image
from sandbox.node.planner import planner_image
from sandbox.progress import note

EXAMPLES = ROOT / "examples"
TOPIC = "orders"
MESSAGES = 1_000
LOPSIDED = "events"
REASSIGNMENT = "balance"
_PLAN_TIMEOUT = "--timeout=300s"


def show(cluster: NodeCluster) -> None:
    """Install Kafka and Regent, create a topic, send messages through it, replace all pods of
    Regent, balance the cluster by a plan that Spark makes; every step says what it does.

    Raises:
        CommandError: a step failed, or messages were lost.
    """
    kafka = KafkaPods(cluster)
    note("kubectl apply -k examples/node: ZooKeeper and three brokers, one of which is controller")
    kafka.deploy()
    print(kafka.kubectl("get", "pods"), flush=True)
    regent, planner = RegentRelease(kafka), planner_image()
    note("helm install regent charts/regent: two pods, in a namespace of the restricted standard")
    regent.install(**{"planner.spark": {"enabled": True, "images": [planner.name]}})
    active = regent.active()
    status = regent.status(active)
    note(f"{active} is the controller: id {status['controllerId']}, of a broker no longer")
    note("kubectl apply -f examples/kafkatopic.yaml")
    kafka.kubectl("apply", "-f", EXAMPLES / "kafkatopic.yaml")
    kafka.kubectl("wait", "--for=condition=Ready", "--timeout=180s", f"ktopic/{TOPIC}")
    print(kafka.kubectl("get", "ktopic"), flush=True)
    _round_trip(kafka)
    elections = kafka.elections_of_brokers()
    note("helm upgrade: all pods of Regent are replaced, one after the other")
    regent.upgrade(podAnnotations={"changed": "yes"})
    if kafka.elections_of_brokers() != elections:
        raise CommandError("a broker became the controller while the pods were replaced")
    note(f"{regent.active()} is the controller, and no broker was in between")
    note("helm install spark-operator: the Kubeflow Spark Operator by its own chart")
    SparkOperator(kafka).install(planner)
    _rebalance(kafka, planner)


def _round_trip(kafka: KafkaPods) -> None:
    sent = [f"message {number}" for number in range(MESSAGES)]
    note(f"producing {MESSAGES} messages with acks=all, consuming them")
    kafka.tool(
        *("kafka-console-producer", "--topic", TOPIC, "--request-required-acks", "all"),
        stdin="".join(f"{message}\n" for message in sent),
    )
    received = kafka.tool(
        *("kafka-console-consumer", "--topic", TOPIC, "--from-beginning"),
        *("--max-messages", str(MESSAGES), "--timeout-ms", "60000"),
    ).splitlines()
    if sorted(received) != sorted(sent):
        raise CommandError(f"sent {len(sent)} messages, received {len(received)}: not the same")
    note(f"{len(received)} messages consumed")


def _rebalance(kafka: KafkaPods, planner: Image) -> None:
    note("kubectl apply -f examples/kafkatopic-two-brokers.yaml: nothing of it is on broker 3")
    kafka.kubectl("apply", "-f", EXAMPLES / "kafkatopic-two-brokers.yaml")
    kafka.kubectl("wait", "--for=condition=Ready", "--timeout=180s", f"ktopic/{LOPSIDED}")
    undeclared = [{"op": "remove", "path": "/spec/replicaAssignment"}]
    kafka.kubectl("patch", "ktopic", LOPSIDED, "--type=json", "--patch", json.dumps(undeclared))
    note("kubectl apply -f examples/partitionreassignment-spark.yaml: a SparkApplication plans")
    document = yaml.safe_load((EXAMPLES / "partitionreassignment-spark.yaml").read_text())
    document["spec"]["rebalance"]["spark"]["image"] = planner.name
    kafka.kubectl("apply", "-f", "-", stdin=json.dumps(document))
    named = f"reassignment/{REASSIGNMENT}"
    kafka.kubectl("wait", "--for=condition=PlanReady", _PLAN_TIMEOUT, named, timeout_s=330)
    print(kafka.kubectl("get", "sparkapplication,reassignment"), flush=True)
    hash_ = kafka.kubectl("get", named, "--output=jsonpath={.status.plan.hash}")
    note(f"kubectl patch: spec.approval.planHash is {hash_}, the plan's")
    approval = {"spec": {"approval": {"planHash": hash_}}}
    kafka.kubectl("patch", named, "--type=merge", "--patch", json.dumps(approval))
    kafka.kubectl("wait", "--for=condition=Completed", _PLAN_TIMEOUT, named, timeout_s=330)
    print(kafka.kubectl("get", "ktopic,reassignment"), flush=True)

"""`make demo`: everything on this machine, a topic by kubectl, a thousand messages through it."""

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import click

from sandbox.errors import CommandError, SandboxError
from sandbox.kafka import KafkaCluster
from sandbox.kubernetes_api import KubernetesApi
from sandbox.kubernetes_binaries import kubernetes_binaries
from sandbox.process import ManagedProcess, run_guarded
from sandbox.progress import note
from sandbox.regent_process import RegentProcess
from sandbox.tools import KafkaTools
from sandbox.zookeeper import ZooKeeper

ROOT = Path(__file__).resolve().parent.parent
EXAMPLE = ROOT / "examples" / "kafkatopic.yaml"
TOPIC = "orders"
MESSAGES = 1_000
INTER_BROKER_PROTOCOL = "2.6"
_KUBECTL_TIMEOUT_S = 180.0


class Kubectl:
    """kubectl with one kubeconfig.

    `is_borrowed` tells that the cluster is the user's, who gets it back as it was.
    """

    def __init__(self, kubeconfig: Path | str, *, is_borrowed: bool) -> None:
        self.kubeconfig = kubeconfig
        self.is_borrowed = is_borrowed
        self.program = kubernetes_binaries().path("kubectl")

    def __call__(self, *arguments: str | Path) -> str:
        outcome = run_guarded(
            [self.program, *arguments],
            environment={"KUBECONFIG": str(self.kubeconfig)},
            timeout_s=_KUBECTL_TIMEOUT_S,
        )
        if outcome.exit_code != 0:
            shown = " ".join(str(argument) for argument in arguments)
            raise CommandError(f"kubectl {shown} failed ({outcome.exit_code}):\n{outcome.stderr}")
        return outcome.stdout


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--once", is_flag=True, help="Stop everything after the round trip.")
def main(once: bool) -> None:
    """Kubernetes API, ZooKeeper, three Kafka brokers and Regent, and a topic served by them.

    With KUBECONFIG set, that cluster's API is used instead of one of our own.
    """
    with _stop_event() as stopped:
        try:
            with ExitStack() as stack:
                try:
                    _run(stack, stopped, once=once)
                finally:
                    stopped.set()  # from here on everything is being stopped: nothing to interrupt
        except SandboxError as error:
            raise click.ClickException(str(error)) from error
        except _StopRequestedError:
            note("stopped")
        else:
            note("everything has been stopped")


class _StopRequestedError(Exception):
    """The user has asked for the end."""


@contextmanager
def _stop_event() -> Iterator[threading.Event]:
    """Set by Ctrl-C or SIGTERM. During the start-up they end it by an exception."""
    stopped = threading.Event()

    def handle(number: int, _frame: object) -> None:
        if not stopped.is_set():
            stopped.set()
            raise _StopRequestedError

    before = {n: signal.signal(n, handle) for n in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stopped
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _run(stack: ExitStack, stopped: threading.Event, *, once: bool) -> None:
    began = time.monotonic()
    kubectl = _kubernetes(stack)
    note("starting ZooKeeper and three Kafka 3.9.1 brokers")
    zookeeper = stack.enter_context(ZooKeeper())
    kafka = stack.enter_context(
        KafkaCluster(
            zookeeper=zookeeper.connect_string,
            brokers=3,
            inter_broker_protocol_version=INTER_BROKER_PROTOCOL,
        )
    )
    _apply_crds(stack, kubectl)
    note("starting Regent, which takes the cluster over from a broker's own controller")
    regent = RegentProcess(
        zookeeper=zookeeper.connect_string,
        kubeconfig=kubectl.kubeconfig,
        settings={"log_format": "text"},
    )
    # Registered before it starts: stopped in an orderly way, it hands the controller back.
    stack.callback(regent.close)
    stack.callback(regent.stop)
    regent.start()
    status = regent.wait_until_active()
    note(
        f"Regent is the controller: id {status['controllerId']}, epoch {status['controllerEpoch']}"
    )
    _apply_topic(stack, kubectl)
    _round_trip(kafka.bootstrap_servers)
    took = time.monotonic() - began
    _explain(kubectl, zookeeper, kafka, regent, took_s=took)
    if once:
        return
    note("running until Ctrl-C")
    _watch(stopped, [zookeeper.process, regent.process, *(b.process for b in kafka.brokers)])


def _kubernetes(stack: ExitStack) -> Kubectl:
    given = os.environ.get("KUBECONFIG")
    if given:
        files = [str(Path(file).expanduser().resolve()) for file in given.split(os.pathsep)]
        kubectl = Kubectl(os.pathsep.join(files), is_borrowed=True)
        note(f"using the Kubernetes API of {given}: {kubectl('config', 'current-context').strip()}")
        return kubectl
    kubernetes_binaries()
    note("starting a Kubernetes API (etcd and kube-apiserver)")
    return Kubectl(stack.enter_context(KubernetesApi()).kubeconfig, is_borrowed=False)


def _apply_crds(stack: ExitStack, kubectl: Kubectl) -> None:
    """Apply what is missing; what was not there before goes at the end."""
    for file in sorted((ROOT / "crds").glob("*.yaml")):
        existed = kubectl("get", "--ignore-not-found", "-o", "name", "-f", file).strip()
        kubectl("apply", "-f", file)
        kubectl("wait", "--for=condition=Established", "--timeout=180s", "-f", file)
        if kubectl.is_borrowed and not existed:
            stack.callback(kubectl, "delete", "--wait=false", "-f", file)


def _apply_topic(stack: ExitStack, kubectl: Kubectl) -> None:
    note(f"kubectl apply -f {EXAMPLE.relative_to(ROOT)}")
    kubectl("apply", "-f", EXAMPLE)
    if kubectl.is_borrowed:
        stack.callback(kubectl, "delete", "--timeout=180s", "--ignore-not-found", "-f", EXAMPLE)
    kubectl("wait", "--for=condition=Ready", "--timeout=180s", "-f", EXAMPLE)
    print(kubectl("get", "ktopic"), flush=True)


def _round_trip(bootstrap_servers: str) -> None:
    """Produce and consume, and compare every message.

    Raises:
        CommandError: if what came out is not what went in.
    """
    tools = KafkaTools(bootstrap_servers)
    sent = [f"message {number}" for number in range(MESSAGES)]
    note(f"producing {MESSAGES} messages with acks=all")
    tools.produce(TOPIC, sent, acks="all")
    note("consuming them")
    received = tools.consume(TOPIC, MESSAGES)
    if sorted(received) != sorted(sent):
        raise CommandError(f"sent {len(sent)} messages, received {len(received)}: not the same")
    note(f"{len(received)} messages consumed")


def _explain(
    kubectl: Kubectl,
    zookeeper: ZooKeeper,
    kafka: KafkaCluster,
    regent: RegentProcess,
    *,
    took_s: float,
) -> None:
    python = Path(sys.executable)
    shown = python.relative_to(Path.cwd()) if python.is_relative_to(Path.cwd()) else python
    print(
        f"""
Done in {took_s:.0f} s: a topic applied with kubectl, created by Regent, served by real brokers,
{MESSAGES} messages produced and consumed.

  export KUBECONFIG={kubectl.kubeconfig}
  export PATH={kubectl.program.parent}:$PATH
  bootstrap servers  {kafka.bootstrap_servers}
  ZooKeeper          {zookeeper.connect_string}
  Regent's log       {regent.log_path}
  Regent over HTTP   http://127.0.0.1:{regent.port}/metrics  /status  /healthz  /readyz

Try next, in another terminal:

  kubectl get ktopic -o wide
  kubectl patch ktopic {TOPIC} --type=merge -p '{{"spec": {{"partitions": 6}}}}'
  kubectl describe ktopic {TOPIC}
  {shown} -m regent status --zookeeper {zookeeper.connect_string} --url http://127.0.0.1:{regent.port}
  {shown} -m sandbox tool kafka-topics --bootstrap-server {kafka.bootstrap_servers} --list
  kill -9 {regent.process.pid}    # a broker takes over by itself; nothing stops
""",
        flush=True,
    )


def _watch(stopped: threading.Event, processes: Sequence[ManagedProcess]) -> None:
    """Wait for the end; say so when a process dies, which the user may well have wanted."""
    told: set[str] = set()
    while not stopped.wait(0.5):
        for process in processes:
            if not process.is_running and process.name not in told:
                told.add(process.name)
                note(f"{process.name} has ended (exit status {process.exit_code})")


if __name__ == "__main__":
    main()

"""`make demo`: everything on this machine, a topic by kubectl, a thousand messages through it."""

import os
import shlex
import signal
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import click

from sandbox.demo_kubernetes import Kubectl, borrowed_cluster, own_cluster, refuse_if_served
from sandbox.errors import CommandError, SandboxError
from sandbox.kafka import KafkaCluster
from sandbox.process import ManagedProcess
from sandbox.progress import note
from sandbox.regent_process import RegentProcess
from sandbox.stop_signals import stop_signals
from sandbox.tools import KafkaTools
from sandbox.zookeeper import ZooKeeper

ROOT = Path(__file__).resolve().parent.parent
EXAMPLE = ROOT / "examples" / "kafkatopic.yaml"
TOPIC = "orders"
MESSAGES = 1_000
INTER_BROKER_PROTOCOL = "2.6"


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--once", is_flag=True, help="Stop everything after the round trip.")
def main(once: bool) -> None:
    """Kubernetes API, ZooKeeper, three Kafka brokers and Regent, and a topic served by them.

    With KUBECONFIG set, that cluster's API is used instead of one of our own: in a namespace that
    is removed at the end, and nothing else of the cluster is changed.
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
    """Ctrl-C, SIGTERM, or the end of the terminal."""


@contextmanager
def _stop_event() -> Iterator[threading.Event]:
    """Set by Ctrl-C, SIGTERM, or the end of the terminal. During the start-up they end it by an
    exception."""
    stopped = threading.Event()

    def handle(number: int, _frame: object) -> None:
        if not stopped.is_set():
            stopped.set()
            raise _StopRequestedError

    before = {n: signal.signal(n, handle) for n in stop_signals()}
    try:
        yield stopped
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _run(stack: ExitStack, stopped: threading.Event, *, once: bool) -> None:
    began = time.monotonic()
    is_borrowed = bool(os.environ.get("KUBECONFIG"))
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
    if is_borrowed:
        refuse_if_served(kubectl)
    note("starting Regent, which takes the cluster over from a broker's own controller")
    regent = RegentProcess(
        zookeeper=zookeeper.connect_string,
        kubeconfig=kubectl.kubeconfig,
        settings={
            "log_format": "text",
            "namespace": kubectl.namespace,
            "lease_namespace": kubectl.namespace,
        },
    )
    # Registered before it starts: stopped in an orderly way, it hands the controller back.
    stack.callback(regent.close)
    stack.callback(regent.stop)
    regent.start()
    status = regent.wait_until_active()
    note(
        f"Regent is the controller: id {status['controllerId']}, epoch {status['controllerEpoch']}"
    )
    _apply_topic(stack, kubectl, regent)
    _round_trip(kafka.bootstrap_servers)
    took = time.monotonic() - began
    _explain(kubectl, zookeeper, kafka, regent, took_s=took)
    if once:
        return
    note("running until Ctrl-C")
    _watch(stopped, [zookeeper.process, regent.process, *(b.process for b in kafka.brokers)])


def _kubernetes(stack: ExitStack) -> Kubectl:
    given = os.environ.get("KUBECONFIG")
    return borrowed_cluster(stack, given) if given else own_cluster(stack)


def _apply_topic(stack: ExitStack, kubectl: Kubectl, regent: RegentProcess) -> None:
    note(f"kubectl apply -f {EXAMPLE.relative_to(ROOT)}")
    kubectl("apply", "--filename", EXAMPLE)
    stack.callback(_delete_topic, kubectl, regent)
    kubectl("wait", "--for=condition=Ready", "--timeout=180s", "--filename", EXAMPLE)
    print(kubectl("get", "ktopic"), flush=True)


def _delete_topic(kubectl: Kubectl, regent: RegentProcess) -> None:
    """While Regent still runs, which deletes the topic with its resource."""
    if regent.process.is_running:
        kubectl("delete", "--timeout=180s", "--ignore-not-found", "--filename", EXAMPLE)


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
    namespace = f" -n {kubectl.namespace}" if kubectl.namespace != "default" else ""
    python = Path(sys.executable)
    shown = python.relative_to(Path.cwd()) if python.is_relative_to(Path.cwd()) else python
    print(
        f"""
Done in {took_s:.0f} s: a topic applied with kubectl, created by Regent, served by real brokers,
{MESSAGES} messages produced and consumed.

  export KUBECONFIG={shlex.quote(str(kubectl.kubeconfig))}
  export PATH={shlex.quote(str(kubectl.program.parent))}:$PATH
  bootstrap servers  {kafka.bootstrap_servers}
  ZooKeeper          {zookeeper.connect_string}
  Regent's log       {regent.log_path}
  Regent over HTTP   http://127.0.0.1:{regent.port}/metrics  /status  /healthz  /readyz

Try next, in another terminal:

  kubectl{namespace} get ktopic -o wide
  kubectl{namespace} patch ktopic {TOPIC} --type=merge -p '{{"spec": {{"partitions": 6}}}}'
  kubectl{namespace} describe ktopic {TOPIC}
  {shown} -m regent status --zookeeper {zookeeper.connect_string} --url http://127.0.0.1:{regent.port}
  {shown} -m sandbox tool kafka-topics --bootstrap-server {kafka.bootstrap_servers} --list
  kill -9 {regent.process.pid}    # a broker takes over by itself; nothing stops
""",
        flush=True,
    )


def _watch(stopped: threading.Event, processes: Sequence[ManagedProcess]) -> None:
    """Wait for the end; say so when a process dies, which the user may well have wanted."""
    reported: set[str] = set()
    while not stopped.wait(0.5):
        for process in processes:
            if not process.is_running and process.name not in reported:
                reported.add(process.name)
                note(f"{process.name} has ended (exit status {process.exit_code})")


if __name__ == "__main__":
    main()

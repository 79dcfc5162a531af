"""`python -m sandbox`: the real environment by hand."""

import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TypeVar

import click

from sandbox.class_data_recording import class_data
from sandbox.doctor import report
from sandbox.environment import Environment
from sandbox.errors import SandboxError
from sandbox.kafka import KafkaCluster
from sandbox.kafka_jars import DEFAULT_VERSION, TESTED_VERSIONS, kafka_jars
from sandbox.kubernetes_api import KubernetesApi
from sandbox.kubernetes_binaries import kubernetes_binaries, node_binaries
from sandbox.kubernetes_server import KubernetesServer
from sandbox.node.cluster import NodeCluster
from sandbox.node.debian import node_tools
from sandbox.node.demo import show
from sandbox.node.images import all_images
from sandbox.process import ManagedProcess
from sandbox.progress import note
from sandbox.spark_operator import spark_application_definition
from sandbox.stop_signals import stop_signals
from sandbox.tools import KafkaTools
from sandbox.zookeeper import ZooKeeper, ZooKeeperEnsemble

_Function = TypeVar("_Function", bound=Callable[..., object])


class _Group(click.Group):
    """Turns errors with a message into that message and exit status 1."""

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except SandboxError as error:
            raise click.ClickException(str(error)) from error


@click.group(cls=_Group, context_settings={"help_option_names": ["-h", "--help"]})
def main() -> None:
    """Real ZooKeeper, Kafka brokers and a Kubernetes API on this machine.

    Addresses go to standard output as NAME=value lines, progress to standard error. A command
    that starts servers runs until Ctrl-C or SIGTERM and then leaves nothing behind.
    """


def _broker_options(function: _Function) -> _Function:
    """The options of every command that starts brokers."""
    for option in (
        click.option("--brokers", default=3, show_default=True, type=click.IntRange(min=1)),
        click.option("--kafka-version", default=DEFAULT_VERSION, show_default=True),
        click.option(
            "--inter-broker-protocol-version", metavar="VERSION", help="Such as 2.6 or 1.1."
        ),
        click.option("--rack", "racks", multiple=True, help="Repeatable; handed out in turn."),
        click.option(
            "--set", "settings", multiple=True, metavar="KEY=VALUE", help="Broker configuration."
        ),
    ):
        function = option(function)
    return function


_servers_option = click.option(
    "--servers", default=1, show_default=True, type=click.IntRange(min=1), help="ZooKeeper servers."
)
_keep_option = click.option("--keep-state", is_flag=True, help="Leave data and logs behind.")


@main.command()
@click.option("--kafka", "versions", multiple=True, metavar="VERSION", help="Repeatable.")
@click.option("--all-kafka", is_flag=True, help=f"Versions {', '.join(TESTED_VERSIONS)}.")
@click.option("--kubernetes", is_flag=True, help="etcd, kube-apiserver, kubectl, helm.")
@click.option("--node", is_flag=True, help="kubelet, containerd, and the images.")
def build(versions: Sequence[str], all_kafka: bool, kubernetes: bool, node: bool) -> None:
    """Fetch and build ahead of time (without options: Kafka's default version and Kubernetes)."""
    wanted = [*versions, *(TESTED_VERSIONS if all_kafka else ())]
    if not wanted and not kubernetes and not node:
        wanted, kubernetes = [DEFAULT_VERSION], True
    for version in dict.fromkeys(wanted):
        print(f"KAFKA_{version.replace('.', '_')}={kafka_jars(version).directory}")
        class_data(version)
    if kubernetes:
        print(f"KUBERNETES={kubernetes_binaries().directory}")
        print(f"SPARK_APPLICATION_DEFINITION={spark_application_definition()}")
    if node:
        print(f"NODE={node_binaries().directory}")
        print(f"NODE_PACKAGES={node_tools()}")
        for image in all_images():
            print(f"IMAGE={image.name}")


@main.command()
def doctor() -> None:
    """Say what this machine has, and what is missing."""
    if not report():
        sys.exit(1)


@main.command()
@_servers_option
@click.option(
    "--kafka-version", default=DEFAULT_VERSION, show_default=True, help="Whose ZooKeeper."
)
@_keep_option
def zookeeper(servers: int, kafka_version: str, keep_state: bool) -> None:
    """Start ZooKeeper, or an ensemble."""
    with _until_signal() as stopped:
        if servers == 1:
            with ZooKeeper(version=kafka_version, keep_state=keep_state) as single:
                _serve(stopped, {"ZOOKEEPER": single.connect_string}, [single.process])
            return
        with ZooKeeperEnsemble(servers, version=kafka_version, keep_state=keep_state) as ensemble:
            processes = [server.process for server in ensemble.servers]
            _serve(stopped, {"ZOOKEEPER": ensemble.connect_string}, processes)


@main.command()
@click.option("--zookeeper", "connect_string", required=True, help="host:port, with a chroot.")
@_broker_options
@_keep_option
def kafka(
    connect_string: str,
    brokers: int,
    kafka_version: str,
    inter_broker_protocol_version: str | None,
    racks: Sequence[str],
    settings: Sequence[str],
    keep_state: bool,
) -> None:
    """Start brokers on a ZooKeeper that runs already."""
    with (
        _until_signal() as stopped,
        KafkaCluster(
            zookeeper=connect_string,
            brokers=brokers,
            version=kafka_version,
            inter_broker_protocol_version=inter_broker_protocol_version,
            racks=racks,
            config=_parse_settings(settings),
            keep_state=keep_state,
        ) as cluster,
    ):
        processes = [broker.process for broker in cluster.brokers]
        _serve(stopped, {"BOOTSTRAP_SERVERS": cluster.bootstrap_servers}, processes)


@main.command()
@click.option("--controller-manager", is_flag=True, help="Service accounts, garbage collection.")
@_keep_option
def kubernetes(controller_manager: bool, keep_state: bool) -> None:
    """Start a Kubernetes API: etcd and kube-apiserver, no nodes."""
    with (
        _until_signal() as stopped,
        KubernetesApi(controller_manager=controller_manager, keep_state=keep_state) as api,
    ):
        _serve(stopped, _kubernetes_addresses(api), api.processes)


@main.command()
@click.option("--with-images", is_flag=True, help="Load those of Kafka, Regent and Spark.")
@_keep_option
def node(with_images: bool, keep_state: bool) -> None:
    """Start a cluster of one node, on which pods run (as root; docs/node-tier.md)."""
    with _until_signal() as stopped, NodeCluster(keep_state=keep_state) as cluster:
        images = all_images() if with_images else []
        cluster.load(*images)
        for image in images:
            note(f"loaded {image.name}")
        _serve(stopped, _kubernetes_addresses(cluster), cluster.processes)


@main.command("demo-cluster")
@click.option("--once", is_flag=True, help="Stop everything after the last step.")
def demo_cluster(once: bool) -> None:
    """Kafka and Regent as pods of a cluster of one node, a topic, and an upgrade of Regent."""
    with _until_signal() as stopped, NodeCluster() as cluster:
        show(cluster)
        if not once:
            _serve(stopped, _kubernetes_addresses(cluster), cluster.processes)


@main.command()
@_broker_options
@_servers_option
@click.option("--chroot", default="", help="Where in ZooKeeper Kafka lives, such as /kafka.")
@click.option("--kubernetes/--no-kubernetes", default=True, show_default=True)
@click.option("--controller-manager", is_flag=True, help="Service accounts, garbage collection.")
@_keep_option
def up(
    brokers: int,
    kafka_version: str,
    inter_broker_protocol_version: str | None,
    racks: Sequence[str],
    settings: Sequence[str],
    servers: int,
    chroot: str,
    kubernetes: bool,
    controller_manager: bool,
    keep_state: bool,
) -> None:
    """Start everything: a Kubernetes API, ZooKeeper and brokers."""
    with (
        _until_signal() as stopped,
        Environment(
            brokers=brokers,
            kafka_version=kafka_version,
            inter_broker_protocol_version=inter_broker_protocol_version,
            racks=racks,
            kafka_config=_parse_settings(settings),
            zookeeper_servers=servers,
            chroot=chroot,
            kubernetes=kubernetes,
            controller_manager=controller_manager,
            keep_state=keep_state,
        ) as environment,
    ):
        addresses = {
            "ZOOKEEPER": environment.zookeeper_connect,
            "BOOTSTRAP_SERVERS": environment.kafka.bootstrap_servers,
        }
        if environment.kubernetes is not None:
            addresses |= _kubernetes_addresses(environment.kubernetes)
        _serve(stopped, addresses, environment.processes)


@main.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.option("--kafka-version", default=DEFAULT_VERSION, show_default=True)
@click.argument("name")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def tool(kafka_version: str, name: str, arguments: Sequence[str]) -> None:
    """Run one of Kafka's own tools, such as kafka-topics, with its own arguments."""
    sys.exit(KafkaTools("", version=kafka_version).run_attached(name, *arguments))


class _Stopped(BaseException):
    """Ctrl-C or SIGTERM: leave through every `with` block."""


@contextmanager
def _until_signal() -> Iterator[list[signal.Signals]]:
    """Leave the block quietly on the first SIGINT, SIGTERM or SIGHUP; later ones are ignored.

    A second Ctrl-C must not interrupt the cleaning up, which takes a fraction of a second.
    """
    received: list[signal.Signals] = []

    def on_signal(number: int, _frame: object) -> None:
        if not received:
            received.append(signal.Signals(number))
            raise _Stopped

    for number in stop_signals():
        signal.signal(number, on_signal)
    try:
        yield received
    except _Stopped:
        note(f"{received[0].name}: everything has been stopped")


def _serve(
    stopped: list[signal.Signals],
    addresses: Mapping[str, str],
    processes: Sequence[ManagedProcess],
) -> None:
    """Print the addresses and stay until a signal; tell when a server ends or comes back."""
    for name, value in addresses.items():
        print(f"{name}={value}")
    sys.stdout.flush()
    for process in processes:
        note(f"{process.name}: process {process.pid}, log {process.log_path}")
    note("everything is ready; Ctrl-C stops it")
    running = dict.fromkeys(processes, True)
    while not stopped:
        time.sleep(0.2)
        for process in processes:
            if running[process] and not process.is_running:
                running[process] = False
                note(f"{process.name} has ended with status {process.exit_code}")


def _kubernetes_addresses(api: KubernetesServer) -> dict[str, str]:
    return {
        "KUBECONFIG": str(api.kubeconfig),
        "KUBECTL": str(api.binaries.path("kubectl")),
        "HELM": str(api.binaries.path("helm")),
    }


def _parse_settings(settings: Sequence[str]) -> dict[str, str]:
    """`KEY=VALUE` options as a mapping."""
    parsed = {}
    for setting in settings:
        key, separator, value = setting.partition("=")
        if not separator or not key:
            raise click.BadParameter(f"{setting!r} is not KEY=VALUE", param_hint="--set")
        parsed[key] = value
    return parsed

"""``regent release``."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import click

from regent.cli.options import (
    checked_namespaces,
    config_option,
    given_options,
    log_quietly,
    zookeeper_options,
)
from regent.model.errors import RegentError
from regent.settings import Settings
from regent.settings.loading import load_settings


@click.command()
@click.option("--all", "everything", is_flag=True, help="Release all KafkaTopics.")
@click.option(
    "--namespace",
    "-n",
    "namespaces",
    multiple=True,
    callback=checked_namespaces,
    metavar="NAME",
    help="Only those in this namespace; may be given several times.",
)
@click.option(
    "--deployment",
    metavar="NAMESPACE/NAME",
    help="First scale this Deployment of Regent to 0 and wait until its pods are gone: a Regent "
    "that runs puts its finalizers back.",
)
@click.option(
    "--skip-forbidden",
    is_flag=True,
    help="Skip a --namespace that does not exist, or whose KafkaTopics may not be listed, for "
    "instance because it was deleted, and the rights with it.",
)
@click.option(
    "--cluster-name",
    metavar="NAME",
    help="Only those whose clusterRef has this name: another Regent serves the others.",
)
@click.option(
    "--default-cluster",
    is_flag=True,
    help="Only those without clusterRef; with --cluster-name, those beside them.",
)
@click.option("--dry-run", is_flag=True, help="Change nothing, print what would be done.")
@config_option
@zookeeper_options
def release(
    *,
    everything: bool,
    namespaces: tuple[str, ...],
    deployment: str | None,
    skip_forbidden: bool,
    cluster_name: str | None,
    default_cluster: bool,
    dry_run: bool,
    config_file: Path | None,
    **options: Any,
) -> None:
    """Remove Regent's finalizer from KafkaTopics, before Regent is uninstalled.

    The topics in Kafka stay, and so do the KafkaTopics. Without the finalizer, deleting a
    KafkaTopic does not delete its topic.

    With ZooKeeper (--zookeeper, or a settings file) it also names the brokers that are to be
    restarted before a broker is the controller again.
    """
    if not everything:
        raise click.UsageError("say --all to release all KafkaTopics, or all in a --namespace")
    from regent.kube.release import Deployment
    from regent.kube.release import release as release_topics
    from regent.reconcile.selection import ClusterSelection

    given = given_options(options)
    if given or config_file is not None:
        _warn_of_hand_back(load_settings(given, file=config_file))
    asyncio.run(
        release_topics(
            namespaces=namespaces,
            deployment=None if deployment is None else Deployment.parse(deployment),
            dry_run=dry_run,
            skip_forbidden=skip_forbidden,
            selection=ClusterSelection(name=cluster_name, is_default=default_cluster)
            if cluster_name is not None or default_cluster
            else None,
            report=click.echo,
        )
    )


def _warn_of_hand_back(settings: Settings) -> None:
    """Name the brokers that are to be restarted first; that it is not known stops nobody."""
    from regent.connections.client_settings import zookeeper_settings
    from regent.status.report import read_deposed_controllers
    from regent.status.text import RESTART_DEPOSED

    log_quietly()
    try:
        brokers = read_deposed_controllers(zookeeper_settings(settings))
    except RegentError as error:
        click.echo(f"Note: not known which brokers are to be restarted first: {error}", err=True)
        return
    if brokers:
        click.echo(f"Note: brokers {', '.join(map(str, brokers))}: {RESTART_DEPOSED}", err=True)

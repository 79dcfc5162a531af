"""How evictions are dealt with, made of the settings of the process."""

from __future__ import annotations

from regent.kube.eviction.settings import EvictionSettings
from regent.model.errors import ConfigurationError
from regent.network.server_tls import TlsFiles
from regent.resources.broker_drain import DrainMode
from regent.settings import Settings


def eviction_settings(settings: Settings) -> EvictionSettings | None:
    """What is done about evictions; None without ``eviction_port``.

    Raises:
        ConfigurationError: A setting lacks another one, or contradicts it.
    """
    if settings.eviction_port is None:
        return None
    if settings.without_kubernetes:
        raise ConfigurationError(
            f"eviction_port is {settings.eviction_port}, but without_kubernetes is set: there are "
            "no BrokerDrains to make. Remove one of the two"
        )
    if not settings.eviction_pods:
        raise ConfigurationError(
            "eviction_port needs eviction_pods: labels that the brokers' pods have and no others, "
            "such as app.kubernetes.io/name=kafka"
        )
    namespace = settings.eviction_namespace
    if namespace is None:
        raise ConfigurationError(
            "eviction_port needs eviction_namespace: a namespace in which BrokerDrains are made"
        )
    if settings.namespaces and namespace not in settings.namespaces:
        raise ConfigurationError(
            f"eviction_namespace is {namespace!r}, which is not served: choose one of "
            f"{', '.join(settings.namespaces)}, or add it to namespaces"
        )
    return EvictionSettings(
        pod_labels=dict(label.split("=", 1) for label in settings.eviction_pods),
        broker_id_label=settings.eviction_broker_id_label,
        mode=DrainMode(settings.eviction_mode),
        namespace=namespace,
        cluster_name=settings.cluster_name,
        abandoned_after_s=settings.eviction_abandoned_after_s,
    )


def eviction_tls_files(settings: Settings) -> TlsFiles:
    """The files of the hook's server.

    Raises:
        ConfigurationError: One is missing.
    """
    certificate, key = settings.eviction_certificate_file, settings.eviction_key_file
    if certificate is None or key is None:
        raise ConfigurationError(
            "eviction_port needs eviction_certificate_file and eviction_key_file: the API server "
            "asks webhooks with HTTPS only"
        )
    return TlsFiles(certificate=certificate, key=key)

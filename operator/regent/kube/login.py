"""Credentials for the API server: in a pod from the service account, elsewhere from kubeconfig.

In a pod three files are all there is to read, and they are read each time: the kubelet renews
the token in place. A kubeconfig can name exec plugins and token providers; there the official
client does the work.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import os
import threading
from pathlib import Path
from typing import Any

import kopf
import kubernetes.client
import kubernetes.config

from regent.kube.errors import KubeLoginError
from regent.kube.service_account import SERVICE_ACCOUNT


async def login() -> kopf.ConnectionInfo:
    """Read the credentials that are valid now. Tokens rotate: call it again after a 401.

    Raises:
        KubeLoginError: If there are none, or they cannot be read.
    """
    # Reading is quick, but an exec plugin may ask somebody over the network. A thread of its own:
    # one that never ends takes none of those that others need, and keeps no process from ending.
    outcome: concurrent.futures.Future[kopf.ConnectionInfo] = concurrent.futures.Future()
    threading.Thread(target=_read, args=(outcome,), name="kube login", daemon=True).start()
    return await asyncio.wrap_future(outcome)


def _read(outcome: concurrent.futures.Future[kopf.ConnectionInfo]) -> None:
    if not outcome.set_running_or_notify_cancel():
        return
    try:
        outcome.set_result(_login())
    except BaseException as error:  # noqa: BLE001 - who waits gets it
        outcome.set_exception(error)


def _login() -> kopf.ConnectionInfo:
    host = os.environ.get("KUBERNETES_SERVICE_HOST", "")
    token_file = SERVICE_ACCOUNT / "token"
    if host and token_file.exists():
        return _service_account(host, token_file)
    return _kubeconfig()


def _service_account(host: str, token_file: Path) -> kopf.ConnectionInfo:
    port = os.environ.get("KUBERNETES_SERVICE_PORT", "443")
    authority = SERVICE_ACCOUNT / "ca.crt"
    try:
        token = token_file.read_text(encoding="utf-8").strip()
    except (OSError, ValueError) as error:
        raise KubeLoginError(f"the token of the service account is unreadable: {error}") from error
    if not token:
        # Somebody may just be writing it. Without one every request would be refused as one of
        # nobody in particular (403), for as long as credentials are used.
        raise KubeLoginError(
            f"the token of the service account is unreadable: {token_file} is empty"
        )
    return kopf.ConnectionInfo(
        server=f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}",
        ca_path=str(authority) if authority.exists() else None,
        token=token,
    )


def _kubeconfig() -> kopf.ConnectionInfo:
    loaded: Any = kubernetes.client.Configuration()
    try:
        load: Any = kubernetes.config.load_kube_config
        # Passed on explicitly: the client looks at the environment only when it is imported.
        load(config_file=os.environ.get("KUBECONFIG"), client_configuration=loaded)
    except Exception as error:
        # The client does not check the form of the file, and somebody may just be writing it: text
        # that is no YAML, or YAML of another shape, raises whatever it comes across.
        problem = " ".join(str(error).split()) or type(error).__name__
        raise KubeLoginError(
            f"no service account and no usable kubeconfig: {problem}; set KUBECONFIG"
        ) from error
    header = loaded.get_api_key_with_prefix("BearerToken") or loaded.get_api_key_with_prefix(
        "authorization"
    )
    scheme, _, token = (header or "").rpartition(" ")
    return kopf.ConnectionInfo(
        server=loaded.host,
        ca_path=loaded.ssl_ca_cert or None,
        insecure=not loaded.verify_ssl,
        username=loaded.username or None,
        password=loaded.password or None,
        scheme=scheme or None,
        token=token or None,
        certificate_path=loaded.cert_file or None,
        private_key_path=loaded.key_file or None,
    )

"""What an API server is to its users, wherever it runs: tokens, kubeconfigs, kubectl and helm."""

import abc
import base64
import http.client
import json
import secrets
import ssl
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from sandbox.errors import CommandError
from sandbox.kubernetes_binaries import kubernetes_binaries
from sandbox.pki import create_pki
from sandbox.ports import LOOPBACK, lease_port
from sandbox.process import ManagedProcess, run_guarded
from sandbox.server import Startable
from sandbox.state import StateDirectory
from sandbox.waiting import wait_until

START_TIMEOUT_S = 180.0
ADMIN = "admin"
_ADMIN_GROUP = "system:masters"

_KUBECONFIG = """\
apiVersion: v1
kind: Config
clusters:
- name: sandbox
  cluster:
    server: {server}
    certificate-authority-data: {authority}
users:
- name: {user}
  user:
    token: {token}
contexts:
- name: sandbox
  context:
    cluster: sandbox
    user: {user}
    namespace: default
current-context: sandbox
"""


class KubernetesServer(Startable):
    """The side of a Kubernetes API that its users see, on a port of loopback.

    `users` adds users with a token beside the administrator: a mapping from name to groups.
    They have no rights but what RBAC objects give them. `names` are further names and addresses
    under which the API server is reached. Whoever inherits sets `etcd` and `api_server`.
    """

    etcd: ManagedProcess
    api_server: ManagedProcess

    def __init__(
        self,
        name: str,
        *,
        users: Mapping[str, Sequence[str]] | None = None,
        names: Sequence[str] = (),
        state: Path | None = None,
        keep_state: bool = False,
    ) -> None:
        self.binaries = kubernetes_binaries()
        self._state = StateDirectory(name, path=state, keep=keep_state)
        self._leases = [lease_port() for _ in range(3)]
        self._etcd_port, self._etcd_peer_port, self.port = (lease.port for lease in self._leases)
        self.server = f"https://{LOOPBACK}:{self.port}"
        self._pki = create_pki(self._state.subdirectory("pki"), names=names)
        self._tokens = self._write_tokens({**(users or {}), ADMIN: [_ADMIN_GROUP]})
        self.kubeconfig = self.kubeconfig_for(ADMIN)
        self._trust = ssl.create_default_context(cafile=str(self._pki.ca_certificate))

    @property
    @abc.abstractmethod
    def processes(self) -> list[ManagedProcess]:
        """All processes, in the order in which they are started."""

    def close(self) -> None:
        """Kill everything, remove the data, give the ports back."""
        for process in reversed(self.processes):
            process.kill()
        for lease in self._leases:
            lease.release()
        self._state.close()

    @property
    def token(self) -> str:
        """The administrator's bearer token."""
        return self._tokens[ADMIN]

    @property
    def ca_certificate(self) -> Path:
        """What to verify the server with."""
        return self._pki.ca_certificate

    @property
    def is_ready(self) -> bool:
        """The API says that it is ready, and the default namespace exists."""
        return self._get("/readyz") and self._get("/api/v1/namespaces/default")

    def kubeconfig_for(self, user: str) -> Path:
        """The kubeconfig of one of the users; certificates and token are inside it.

        Raises:
            KeyError: there is no such user.
        """
        return self._write_kubeconfig(f"{user}.kubeconfig", user=user, server=self.server)

    def wait_until_ready(self, *, timeout_s: float = START_TIMEOUT_S) -> None:
        """Wait until the API is ready."""
        wait_until(
            lambda: self.is_ready,
            timeout_s=timeout_s,
            describe=f"the Kubernetes API at {self.server} to be ready",
            watch=[self.etcd, self.api_server],
        )

    def kubectl(
        self,
        *arguments: str | Path,
        stdin: str | None = None,
        user: str = ADMIN,
        timeout_s: float = 180.0,
    ) -> str:
        """Run kubectl as a user and return its standard output.

        Raises:
            CommandError: it ended with an error, such as being refused.
        """
        return self._run("kubectl", arguments, stdin=stdin, user=user, timeout_s=timeout_s)

    def helm(self, *arguments: str | Path, user: str = ADMIN, timeout_s: float = 180.0) -> str:
        """Run helm as a user and return its standard output.

        Raises:
            CommandError: it ended with an error.
        """
        return self._run("helm", arguments, stdin=None, user=user, timeout_s=timeout_s)

    def _etcd_arguments(self) -> list[str]:
        """A member that is alone, on loopback, and forgets what a power failure interrupts."""
        client = f"http://{LOOPBACK}:{self._etcd_port}"
        peer = f"http://{LOOPBACK}:{self._etcd_peer_port}"
        return [
            f"--data-dir={self._state.subdirectory('etcd-data')}",
            "--unsafe-no-fsync",
            f"--listen-client-urls={client}",
            f"--advertise-client-urls={client}",
            f"--listen-peer-urls={peer}",
            f"--initial-advertise-peer-urls={peer}",
            f"--initial-cluster=default={peer}",
            "--log-level=warn",
        ]

    def _api_server_arguments(self, *, address: str, port: int) -> list[str]:
        """An API server that is reached under an address."""
        pki = self._pki
        return [
            f"--etcd-servers=http://{LOOPBACK}:{self._etcd_port}",
            f"--bind-address={address}",
            f"--advertise-address={address}",
            f"--secure-port={port}",
            f"--tls-cert-file={pki.api_server_certificate}",
            f"--tls-private-key-file={pki.api_server_key}",
            f"--client-ca-file={pki.ca_certificate}",
            f"--token-auth-file={self._state.path / 'tokens.csv'}",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={pki.service_account_key}",
            f"--service-account-signing-key-file={pki.service_account_key}",
            "--service-cluster-ip-range=10.96.0.0/16",
            "--allow-privileged=true",
        ]

    def _controller_manager_arguments(self, kubeconfig: Path) -> list[str]:
        """The stock controllers, without an election."""
        return [
            f"--kubeconfig={kubeconfig}",
            f"--service-account-private-key-file={self._pki.service_account_key}",
            f"--root-ca-file={self._pki.ca_certificate}",
            "--leader-elect=false",
            "--secure-port=0",
        ]

    def _wait_for_etcd(self) -> None:
        wait_until(
            self._etcd_health,
            timeout_s=START_TIMEOUT_S,
            describe="etcd to be healthy",
            until=lambda health: health == "true",
            watch=[self.etcd],
        )

    def _etcd_health(self) -> str:
        connection = http.client.HTTPConnection(LOOPBACK, self._etcd_port, timeout=10)
        try:
            connection.request("GET", "/health")
            return str(json.loads(connection.getresponse().read())["health"])
        finally:
            connection.close()

    def _run(
        self,
        program: str,
        arguments: Sequence[str | Path],
        *,
        stdin: str | None,
        user: str,
        timeout_s: float,
    ) -> str:
        home = self._state.subdirectory("home")
        own = {
            "KUBECONFIG": str(self.kubeconfig_for(user)),
            "KUBECACHEDIR": str(home / "kube-cache"),
            "HELM_CACHE_HOME": str(home / "helm-cache"),
            "HELM_CONFIG_HOME": str(home / "helm-config"),
            "HELM_DATA_HOME": str(home / "helm-data"),
        }
        outcome = run_guarded(
            [self.binaries.path(program), *arguments],
            stdin=stdin,
            environment=own,
            timeout_s=timeout_s,
        )
        if outcome.exit_code != 0:
            command = " ".join([program, *(str(argument) for argument in arguments)])
            raise CommandError(f"{command} failed ({outcome.exit_code}):\n{outcome.stderr}")
        return outcome.stdout

    def _write_tokens(self, users: Mapping[str, Sequence[str]]) -> dict[str, str]:
        """The file of static tokens the API server reads when it starts."""
        tokens = {user: secrets.token_hex(16) for user in users}
        path = self._state.path / "tokens.csv"
        path.touch(mode=0o600)
        path.write_text(
            "".join(f'{tokens[user]},{user},{user},"{",".join(users[user])}"\n' for user in users)
        )
        return tokens

    def _write_kubeconfig(self, name: str, *, user: str, server: str) -> Path:
        """A file for a user who reaches the API server under some address."""
        path = self._state.path / name
        authority = base64.b64encode(self._pki.ca_certificate.read_bytes()).decode()
        text = _KUBECONFIG.format(
            server=server, authority=authority, user=user, token=self._tokens[user]
        )
        if not path.exists() or path.read_text() != text:
            # Whole or not at all: a program that reads it meanwhile would find it empty.
            with tempfile.NamedTemporaryFile("w", dir=path.parent, delete=False) as new:
                new.write(text)
            Path(new.name).replace(path)
        return path

    def _get(self, path: str) -> bool:
        """The API answers 200 to the administrator."""
        connection = http.client.HTTPSConnection(
            LOOPBACK, self.port, timeout=10, context=self._trust
        )
        try:
            connection.request("GET", path, headers={"Authorization": f"Bearer {self.token}"})
            return connection.getresponse().status == http.HTTPStatus.OK
        finally:
            connection.close()

"""A real Kubernetes API on loopback: etcd and kube-apiserver, without nodes.

Everything the API itself does is real: validation, CEL, defaulting, watches, server-side apply,
RBAC, tokens, Events. No pod ever runs. With `controller_manager=True` the stock controllers
work too: default service accounts appear, owned objects are garbage-collected, and a deleted
namespace goes away.
"""

import base64
import http.client
import json
import secrets
import ssl
from collections.abc import Mapping, Sequence
from pathlib import Path

from sandbox.errors import CommandError
from sandbox.kubernetes_binaries import kubernetes_binaries
from sandbox.pki import Pki, create_pki
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


class KubernetesApi(Startable):
    """etcd + kube-apiserver, and kubectl and helm for them.

    `users` adds users with a token beside the administrator: a mapping from name to groups.
    They have no rights but what RBAC objects give them. `etcd`, `api_server` and
    `controller_manager` are the processes, for stopping, killing and pausing one of them;
    `start` starts what does not run.
    """

    def __init__(
        self,
        *,
        users: Mapping[str, Sequence[str]] | None = None,
        controller_manager: bool = False,
        api_server_arguments: Sequence[str] = (),
        state: Path | None = None,
        keep_state: bool = False,
    ) -> None:
        self._binaries = kubernetes_binaries()
        self._state = StateDirectory("kubernetes", path=state, keep=keep_state)
        self._leases = [lease_port() for _ in range(3)]
        self._etcd_port, self._etcd_peer_port, self.port = (lease.port for lease in self._leases)
        self.server = f"https://{LOOPBACK}:{self.port}"
        self._pki = create_pki(self._state.subdirectory("pki"))
        self._tokens = self._write_tokens({**(users or {}), ADMIN: [_ADMIN_GROUP]})
        self.kubeconfig = self.kubeconfig_for(ADMIN)
        self._trust = ssl.create_default_context(cafile=str(self._pki.ca_certificate))
        self.etcd = self._process("etcd", self._etcd_arguments())
        self.api_server = self._process(
            "kube-apiserver",
            [
                *self._api_server_arguments(self._pki),
                *([] if controller_manager else ["--disable-admission-plugins=ServiceAccount"]),
                *api_server_arguments,
            ],
        )
        self.controller_manager = (
            self._process("kube-controller-manager", self._controller_manager_arguments())
            if controller_manager
            else None
        )

    @property
    def token(self) -> str:
        """The administrator's bearer token."""
        return self._tokens[ADMIN]

    @property
    def ca_certificate(self) -> Path:
        """What to verify the server with."""
        return self._pki.ca_certificate

    @property
    def processes(self) -> list[ManagedProcess]:
        """All processes, in the order in which they are started."""
        optional = [] if self.controller_manager is None else [self.controller_manager]
        return [self.etcd, self.api_server, *optional]

    @property
    def is_ready(self) -> bool:
        """The API says that it is ready, and the default namespace exists."""
        return self._get("/readyz") and self._get("/api/v1/namespaces/default")

    def kubeconfig_for(self, user: str) -> Path:
        """The kubeconfig of one of the users; certificates and token are inside it.

        Raises:
            KeyError: there is no such user.
        """
        path = self._state.path / f"{user}.kubeconfig"
        authority = base64.b64encode(self._pki.ca_certificate.read_bytes()).decode()
        text = _KUBECONFIG.format(
            server=self.server, authority=authority, user=user, token=self._tokens[user]
        )
        path.touch(mode=0o600)
        path.write_text(text)
        return path

    def start(self) -> None:
        """Start the processes that do not run and wait until the API is ready."""
        for process in self.processes:
            if process.is_running:
                continue
            process.start()
            if process is self.etcd:
                self._wait_for_etcd()
            elif process is self.api_server:
                self.wait_until_ready()

    def advance_store(self, revision: int) -> None:
        """Start etcd alone, if it does not run, and write to it until it is at a revision: so
        `resourceVersion`s go on from there. What is written is no object of the API."""
        if not self.etcd.is_running:
            self.etcd.start()
        self._wait_for_etcd()
        body = json.dumps({"key": base64.b64encode(b"/sandbox").decode()})
        connection = http.client.HTTPConnection(LOOPBACK, self._etcd_port, timeout=10)
        try:
            reached = 0
            while reached < revision:
                connection.request("POST", "/v3/kv/put", body)
                reached = int(json.load(connection.getresponse())["header"]["revision"])
        finally:
            connection.close()

    def wait_until_ready(self, *, timeout_s: float = START_TIMEOUT_S) -> None:
        """Wait until the API is ready."""
        wait_until(
            lambda: self.is_ready,
            timeout_s=timeout_s,
            describe=f"the Kubernetes API at {self.server} to be ready",
            watch=[self.etcd, self.api_server],
        )

    def stop(self) -> None:
        """Stop everything in an orderly way; the objects stay."""
        for process in reversed(self.processes):
            process.stop()

    def close(self) -> None:
        """Kill everything, remove the data, give the ports back."""
        for process in reversed(self.processes):
            process.kill()
        for lease in self._leases:
            lease.release()
        self._state.close()

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
            [self._binaries.path(program), *arguments],
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

    def _process(self, command: str, arguments: Sequence[str]) -> ManagedProcess:
        return ManagedProcess(
            command,
            [self._binaries.path(command), *arguments],
            log_path=self._state.path / f"{command}.log",
            directory=self._state.path,
        )

    def _etcd_arguments(self) -> list[str]:
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

    def _api_server_arguments(self, pki: Pki) -> list[str]:
        return [
            f"--etcd-servers=http://{LOOPBACK}:{self._etcd_port}",
            f"--bind-address={LOOPBACK}",
            f"--advertise-address={LOOPBACK}",
            f"--secure-port={self.port}",
            f"--tls-cert-file={pki.api_server_certificate}",
            f"--tls-private-key-file={pki.api_server_key}",
            f"--client-ca-file={pki.ca_certificate}",
            f"--token-auth-file={self._state.path / 'tokens.csv'}",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={pki.service_account_key}",
            f"--service-account-signing-key-file={pki.service_account_key}",
            "--authorization-mode=RBAC",
            "--service-cluster-ip-range=10.96.0.0/16",
            "--endpoint-reconciler-type=none",
            "--allow-privileged=true",
        ]

    def _controller_manager_arguments(self) -> list[str]:
        return [
            f"--kubeconfig={self.kubeconfig}",
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

"""A real Kubernetes API on loopback: etcd and kube-apiserver, without nodes.

Everything the API itself does is real: validation, CEL, defaulting, watches, server-side apply,
RBAC, tokens, Events. No pod ever runs. With `controller_manager=True` the stock controllers
work too: default service accounts appear, owned objects are garbage-collected, and a deleted
namespace goes away.
"""

import base64
import http.client
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from sandbox.kubernetes_server import KubernetesServer
from sandbox.ports import LOOPBACK
from sandbox.process import ManagedProcess


class KubernetesApi(KubernetesServer):
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
        super().__init__("kubernetes", users=users, state=state, keep_state=keep_state)
        self.etcd = self._process("etcd", self._etcd_arguments())
        self.api_server = self._process(
            "kube-apiserver",
            [
                *self._api_server_arguments(address=LOOPBACK, port=self.port),
                "--authorization-mode=RBAC",
                "--endpoint-reconciler-type=none",
                *([] if controller_manager else ["--disable-admission-plugins=ServiceAccount"]),
                *api_server_arguments,
            ],
        )
        self.controller_manager = (
            self._process(
                "kube-controller-manager", self._controller_manager_arguments(self.kubeconfig)
            )
            if controller_manager
            else None
        )

    @property
    def processes(self) -> list[ManagedProcess]:
        """All processes, in the order in which they are started."""
        optional = [] if self.controller_manager is None else [self.controller_manager]
        return [self.etcd, self.api_server, *optional]

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

    def stop(self) -> None:
        """Stop everything in an orderly way; the objects stay."""
        for process in reversed(self.processes):
            process.stop()

    def _process(self, command: str, arguments: Sequence[str]) -> ManagedProcess:
        return ManagedProcess(
            command,
            [self.binaries.path(command), *arguments],
            log_path=self._state.path / f"{command}.log",
            directory=self._state.path,
        )

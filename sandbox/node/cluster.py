"""A Kubernetes cluster of one node, in network, mount, process and host-name namespaces of its own.

Process 1 of these namespaces makes mounts and network (`init.sh`); everything else enters them.
The kernel ends all of it, and every pod, when process 1 ends; process 1 ends with the process that
made the namespaces; and the guard sees to that one. So nothing outlives its owner, as everywhere in
the sandbox. Nothing of the machine's network or of its files is changed, and pods reach nothing
outside of their node.
"""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from sandbox.errors import CommandError, MachineError
from sandbox.kubernetes_binaries import node_binaries
from sandbox.kubernetes_server import ADMIN, KubernetesServer
from sandbox.node import configuration
from sandbox.node.cgroups import make_cgroup, remove_cgroup
from sandbox.node.debian import node_tools
from sandbox.node.images import pause_image
from sandbox.node.layers import Image, write_archive
from sandbox.node.machine import obstacle
from sandbox.ports import lease_port
from sandbox.process import ManagedProcess, run_guarded
from sandbox.waiting import wait_until

NODE = "node"
ADDRESS = "10.200.0.1"
API_PORT = 6443
START_TIMEOUT_S = 180.0
_COMMAND_TIMEOUT_S = 300.0
_READY = '{.status.conditions[?(@.type=="Ready")].status}'
_CONTROLLERS = (
    "--controllers=*,-nodeipam,-cloud-node-lifecycle-controller,-node-route-controller,"
    "-service-lb-controller"
)
# $1: the file with the id of process 1; the rest: the command
_ENTER = 'exec nsenter --target "$(cat "$1")" --net --mount --pid --uts --ipc -- "${@:2}"'
_HERE = Path(__file__).parent


class NodeCluster(KubernetesServer):
    """A whole cluster of one node, with kubectl and helm for it from outside.

    `load` brings images to it, `forward` makes an address of its network reachable on loopback.

    Raises:
        MachineError: the machine cannot run containers; the message says what is in the way.
    """

    def __init__(
        self,
        *,
        users: Mapping[str, Sequence[str]] | None = None,
        state: Path | None = None,
        keep_state: bool = False,
    ) -> None:
        if (reason := obstacle()) is not None:
            raise MachineError(reason)
        self._packages = node_tools()
        self._node_binaries = node_binaries()
        super().__init__("node", users=users, names=[ADDRESS], state=state, keep_state=keep_state)
        self._inside = self._write_kubeconfig(
            "inside.kubeconfig", user=ADMIN, server=f"https://{ADDRESS}:{API_PORT}"
        )
        self._cgroup = make_cgroup()
        self._forwarders: list[ManagedProcess] = []
        self._loaded: set[str] = set()
        self._namespaces = ManagedProcess(
            "the node's process 1",
            [
                *("unshare", "--net", "--mount", "--pid", "--uts", "--ipc", "--fork"),
                *("--kill-child", "--mount-proc", "--propagation", "private"),
                *("bash", _HERE / "init.sh"),
            ],
            log_path=self._log("init"),
            environment={
                "STATE": str(self._state.path),
                "PACKAGES": str(self._packages),
                "ADDRESS": ADDRESS,
            },
        )
        self.etcd = self._process(self.binaries.path("etcd"), self._etcd_arguments())
        self.api_server = self._process(
            self.binaries.path("kube-apiserver"),
            [
                *self._api_server_arguments(address=ADDRESS, port=API_PORT),
                "--authorization-mode=RBAC",
                f"--kubelet-client-certificate={self._pki.api_server_certificate}",
                f"--kubelet-client-key={self._pki.api_server_key}",
                "--kubelet-preferred-address-types=InternalIP",
            ],
        )
        self._containerd = self._process(
            "containerd", ["--config", configuration.write_containerd(self._state.path)]
        )
        self._agents = self._make_agents()

    @property
    def processes(self) -> list[ManagedProcess]:
        """All processes of the node and the forwarders to it, in the order of their start."""
        return [
            *(self._namespaces, self._containerd, *self._forwarders),
            *(self.etcd, self.api_server, *self._agents),
        ]

    def start(self) -> None:
        """Start all of it and wait until pods can run."""
        self._start_namespaces()
        self._containerd.start()
        self._start_forwarder(
            f"{self._etcd_port}=127.0.0.1:{self._etcd_port}", f"{self.port}={ADDRESS}:{API_PORT}"
        )
        self.etcd.start()
        self._wait_for_etcd()
        self.api_server.start()
        self.wait_until_ready()
        for process in self._agents:
            process.start()
        wait_until(
            lambda: self.run("ctr", "version"),
            timeout_s=START_TIMEOUT_S,
            describe="containerd to serve",
            watch=[self._containerd],
        )
        self.load(pause_image())
        wait_until(
            lambda: self.kubectl("get", "node", NODE, "--output", f"jsonpath={_READY}"),
            until=lambda status: status == "True",
            timeout_s=START_TIMEOUT_S,
            describe="the node to be ready",
            watch=[self._containerd, *self._agents],
        )

    def stop(self) -> None:
        """End the node with all its pods. Objects are there again after the next start; images and
        forwarded ports are not."""
        for process in reversed(self.processes):
            process.kill()
        self._loaded.clear()
        self._forwarders.clear()

    def close(self) -> None:
        """End it with all its pods, and remove its data and its control groups."""
        super().close()
        remove_cgroup(self._cgroup)

    def load(self, *images: Image) -> None:
        """Bring images to the node; what is there already is left alone. Layers that they share are
        brought once.

        Raises:
            CommandError: containerd refused one.
        """
        wanted = [image for image in images if image.name not in self._loaded]
        if not wanted:
            return
        archive = self._state.path / "image.tar"
        write_archive(archive, wanted)
        try:
            self.run("ctr", "--namespace", "k8s.io", "images", "import", archive)
        finally:
            archive.unlink()
        self._loaded.update(image.name for image in wanted)

    def run(self, *command: str | Path, timeout_s: float = _COMMAND_TIMEOUT_S) -> str:
        """Run a command on the node and return its standard output.

        Raises:
            CommandError: it ended with an error.
        """
        outcome = run_guarded(self._entering(*command), timeout_s=timeout_s)
        if outcome.exit_code != 0:
            shown = " ".join(str(part) for part in command)
            raise CommandError(f"{shown} failed ({outcome.exit_code}):\n{outcome.stderr}")
        return outcome.stdout

    def forward(self, host: str, port: int) -> int:
        """A port of loopback that leads to an address of the node's network, as a Service's."""
        lease = lease_port()
        self._leases.append(lease)
        self._start_forwarder(f"{lease.port}={host}:{port}")
        return lease.port

    def _start_namespaces(self) -> None:
        made = self._state.path / "made"
        made.unlink(missing_ok=True)
        self._namespaces.start()
        wait_until(
            made.exists,
            timeout_s=START_TIMEOUT_S,
            describe="the node's namespaces to be made",
            watch=[self._namespaces],
        )
        unshare = self._namespaces.pid
        (child,) = Path(f"/proc/{unshare}/task/{unshare}/children").read_text().split()
        (self._state.path / "pid").write_text(child)

    def _make_agents(self) -> list[ManagedProcess]:
        """What runs beside API server and containerd."""
        state, kubeconfig, programs = self._state.path, self._inside, self._node_binaries
        plugins = f"--flex-volume-plugin-dir={state / 'volume-plugins'}"  # /usr is read-only
        kubelet = configuration.write_kubelet(
            state, address=ADDRESS, cgroup=self._cgroup, ca_certificate=self.ca_certificate
        )
        proxy = configuration.write_proxy(state, node=NODE, kubeconfig=kubeconfig)
        corefile = configuration.write_corefile(state, address=ADDRESS, kubeconfig=kubeconfig)
        return [
            self._process(
                self.binaries.path("kube-controller-manager"),
                [*self._controller_manager_arguments(kubeconfig), plugins, _CONTROLLERS],
            ),
            self._process(
                programs.path("kube-scheduler"),
                [f"--kubeconfig={kubeconfig}", "--leader-elect=false"],
            ),
            self._process(
                programs.path("kubelet"),
                [
                    f"--config={kubelet}",
                    f"--kubeconfig={kubeconfig}",
                    f"--hostname-override={NODE}",
                    f"--node-ip={ADDRESS}",
                    f"--root-dir={state / 'kubelet'}",
                    f"--cert-dir={state / 'kubelet-pki'}",
                ],
            ),
            self._process(programs.path("kube-proxy"), [f"--config={proxy}"]),
            self._process(programs.path("coredns"), ["-conf", corefile]),
        ]

    def _process(self, program: Path | str, arguments: Sequence[str | Path]) -> ManagedProcess:
        """A process of the node; it enters the namespaces when it is started."""
        name = Path(program).name
        return ManagedProcess(name, self._entering(program, *arguments), log_path=self._log(name))

    def _entering(self, *command: str | Path) -> list[str | Path]:
        """A command line of the node: process 1 is looked up when it runs."""
        return ["bash", "-c", _ENTER, "bash", self._state.path / "pid", *command]

    def _start_forwarder(self, *routes: str) -> None:
        """`routes` as `forward.py` takes them."""
        pid = (self._state.path / "pid").read_text()
        forwarder = ManagedProcess(
            "the forwarder to the node",
            [sys.executable, "-I", "-S", _HERE / "forward.py", pid, *routes],
            log_path=self._log("forward"),
        )
        forwarder.start()
        self._forwarders.append(forwarder)

    def _log(self, name: str) -> Path:
        return self._state.path / "logs" / f"{name}.log"

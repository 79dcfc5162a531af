"""Configuration files of what a node consists of."""

import json
from collections.abc import Mapping
from pathlib import Path

POD_ADDRESSES = "10.244.0.0/24"
CLUSTER_DOMAIN = "cluster.local"
PAUSE_IMAGE = "localhost/pause:1"
CONTAINERD_SOCKET = "/run/containerd/containerd.sock"

_CONTAINERD = """\
version = 2
root = "{state}/containerd"
state = "/run/containerd"
disabled_plugins = [
  "io.containerd.snapshotter.v1.aufs",
  "io.containerd.snapshotter.v1.btrfs",
  "io.containerd.snapshotter.v1.devmapper",
  "io.containerd.snapshotter.v1.zfs",
]
[grpc]
  address = "{socket}"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{pause}"
  restrict_oom_score_adj = true
  disable_apparmor = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "{state}/cni"
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "overlayfs"
    default_runtime_name = "runc"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
        SystemdCgroup = false
"""
_COREFILE = """\
.:53 {{
  bind {address}
  errors
  ready 127.0.0.1:8181
  kubernetes {domain} in-addr.arpa ip6.arpa {{
    kubeconfig {kubeconfig}
  }}
}}
"""


def write_containerd(state: Path) -> Path:
    """Of containerd and, beside it, of the network plugins.

    Every pod has a pair of interfaces of its own with the node (`ptp`): no bridge, whose packets
    would have to be shown to iptables for services.
    """
    network = {
        "cniVersion": "1.0.0",
        "name": "pods",
        "plugins": [
            {
                "type": "ptp",
                "mtu": 1500,
                "ipMasq": False,
                "ipam": {
                    "type": "host-local",
                    "dataDir": str(state / "addresses"),
                    "ranges": [[{"subnet": POD_ADDRESSES}]],
                    "routes": [{"dst": "0.0.0.0/0"}],
                },
            },
            {"type": "portmap", "capabilities": {"portMappings": True}},
        ],
    }
    (state / "cni").mkdir(exist_ok=True)
    (state / "cni" / "10-pods.conflist").write_text(json.dumps(network))
    path = state / "containerd.toml"
    path.write_text(_CONTAINERD.format(state=state, socket=CONTAINERD_SOCKET, pause=PAUSE_IMAGE))
    return path


def write_kubelet(state: Path, *, address: str, cgroup: str, ca_certificate: Path) -> Path:
    """Of kubelet; `address` is the node's, where CoreDNS answers, too."""
    resolver = state / "resolv.conf"
    resolver.write_text(f"nameserver {address}\n")
    configuration = {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "authentication": {
            "anonymous": {"enabled": False},
            "webhook": {"enabled": False},
            "x509": {"clientCAFile": str(ca_certificate)},
        },
        "authorization": {"mode": "AlwaysAllow"},  # of those with a certificate of the authority
        "containerRuntimeEndpoint": f"unix://{CONTAINERD_SOCKET}",
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": f"/{cgroup}",
        "failCgroupV1": False,
        "failSwapOn": False,
        "enforceNodeAllocatable": [],
        "clusterDNS": [address],
        "clusterDomain": CLUSTER_DOMAIN,
        "resolvConf": str(resolver),
        "evictionHard": {
            "memory.available": "100Mi",
            "nodefs.available": "1%",
            "imagefs.available": "1%",
        },
        "imageGCHighThresholdPercent": 100,
        "imageGCLowThresholdPercent": 99,
        "podLogsDir": str(state / "pods"),
        "nodeStatusUpdateFrequency": "5s",
        "serializeImagePulls": False,
        "maxPods": 100,
        "volumePluginDir": str(state / "volume-plugins"),
    }
    return _write(state / "kubelet.json", configuration)


def write_proxy(state: Path, *, node: str, kubeconfig: Path) -> Path:
    """Of kube-proxy; the limits on connections are the machine's, which it must not set."""
    configuration = {
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "mode": "iptables",
        "clusterCIDR": POD_ADDRESSES,
        "clientConnection": {"kubeconfig": str(kubeconfig)},
        "hostnameOverride": node,
        "conntrack": {
            "maxPerCore": 0,
            "tcpEstablishedTimeout": "0s",
            "tcpCloseWaitTimeout": "0s",
        },
    }
    return _write(state / "kube-proxy.json", configuration)


def write_corefile(state: Path, *, address: str, kubeconfig: Path) -> Path:
    """Of CoreDNS, which knows the names of the cluster and no others."""
    path = state / "Corefile"
    path.write_text(_COREFILE.format(address=address, domain=CLUSTER_DOMAIN, kubeconfig=kubeconfig))
    return path


def _write(path: Path, configuration: Mapping[str, object]) -> Path:
    path.write_text(json.dumps(configuration, indent=1))
    return path

"""A Kubernetes cluster of one node, on which pods really run: kubelet, containerd, scheduler,
kube-proxy and CoreDNS in namespaces of their own, and images that are built without Docker.

docs/node-tier.md says how it is made, and what the machine has to allow.
"""

#!/bin/bash
# Process 1 of a node, in namespaces of its own: makes its mounts and its network, and then reaps
# what others leave behind. All that the node consists of ends with this process.
#
# STATE: the node's directory. PACKAGES: unpacked Debian packages. ADDRESS: the node's address.
set -eu

mount --make-rshared /
hostname node
# containerd, runc, iptables and the like, seen here only
mount -t overlay packages -o "lowerdir=$PACKAGES/usr:/usr" /usr
mount -t tmpfs run /run
mkdir -p /run/lock /run/containerd

# kubelet sets these for the whole machine; it is shown files that hold what it wants
for setting in vm/overcommit_memory=1 vm/panic_on_oom=0 kernel/panic=10 kernel/panic_on_oops=1 \
  kernel/keys/root_maxkeys=1000000 kernel/keys/root_maxbytes=25000000; do
  file=/run/sysctl-$(echo "${setting%=*}" | tr / -)
  echo "${setting#*=}" >"$file"
  mount --bind "$file" "/proc/sys/${setting%=*}"
done

# a bridge carries the node's address; the route only makes service addresses routable
ip link set lo up
ip link add node0 type bridge
ip address add "$ADDRESS/24" dev node0
ip link set node0 up
ip route add default dev node0
echo 1 >/proc/sys/net/ipv4/ip_forward

mkdir -p "$STATE/kubelet"
mount --bind "$STATE/kubelet" "$STATE/kubelet"
mount --make-shared "$STATE/kubelet"

touch "$STATE/made"
sleep infinity &
while :; do wait; done

#!/bin/bash
# A ZooKeeper that stands alone.
set -eu
cat >/tmp/zoo.cfg <<'C'
tickTime=2000
clientPort=2181
dataDir=/var/lib/zookeeper
admin.enableServer=false
forceSync=no
maxClientCnxns=0
4lw.commands.whitelist=*
C
export KAFKA_LOG4J=/opt/kafka/server-log4j.properties
exec kafka-class org.apache.zookeeper.server.quorum.QuorumPeerMain /tmp/zoo.cfg

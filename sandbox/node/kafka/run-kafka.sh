#!/bin/bash
# A broker. Every variable KAFKA_A_B is the setting a.b, but those for this script and for Java.
set -eu
settings=/tmp/server.properties
{
  echo log.dirs=/var/lib/kafka/data
  # one node holds all the brokers: small buffers and pools
  echo log.cleaner.dedupe.buffer.size=4194304
  echo offsets.topic.num.partitions=5
  echo transaction.state.log.num.partitions=5
  echo num.network.threads=2
  echo num.io.threads=4
  echo group.initial.rebalance.delay.ms=0
  env | sed -n 's/^KAFKA_\([A-Z0-9_]*\)=/\1 /p' | while read -r name value; do
    case $name in
      HEAP_OPTS | LOG4J) ;;
      *) echo "$(echo "$name" | tr A-Z_ a-z.)=$value" ;;
    esac
  done
} >"$settings"
export KAFKA_LOG4J=/opt/kafka/server-log4j.properties
exec kafka-class kafka.Kafka "$settings"

#!/bin/bash
# A Java program out of Kafka's jars: kafka-class CLASS ARGUMENT ...
set -eu
exec java ${KAFKA_HEAP_OPTS:--Xmx256m} -XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xshare:auto \
  -Djava.awt.headless=true -Djava.net.preferIPv4Stack=true \
  -Dlog4j.configuration="file:${KAFKA_LOG4J:-/opt/kafka/tools-log4j.properties}" \
  -cp '/opt/kafka/libs/*' "$@"

#!/bin/bash
# How Spark on Kubernetes starts a driver or an executor; anything else is run as it is. Spark's own
# images have a longer one, which pyspark does not bring.
set -euo pipefail

case "${1:-}" in
  driver)
    shift
    # A driver ends before code that is compiled with care would pay.
    exec tini -s -- "$SPARK_HOME/bin/spark-submit" \
      --conf "spark.driver.bindAddress=$SPARK_DRIVER_BIND_ADDRESS" \
      --conf "spark.executorEnv.SPARK_DRIVER_POD_IP=$SPARK_DRIVER_BIND_ADDRESS" \
      --conf "spark.driver.defaultJavaOptions=-XX:TieredStopAtLevel=1" \
      --deploy-mode client "$@"
    ;;
  executor)
    # Options of the JVM come as SPARK_JAVA_OPT_0, SPARK_JAVA_OPT_1, ...
    options=()
    for ((index = 0; ; index++)); do
      name=SPARK_JAVA_OPT_$index
      [ -n "${!name+set}" ] || break
      options+=("${!name}")
    done
    exec tini -s -- java "${options[@]}" \
      "-Xms$SPARK_EXECUTOR_MEMORY" "-Xmx$SPARK_EXECUTOR_MEMORY" \
      -cp "$SPARK_HOME/conf:${SPARK_CLASSPATH:-}:$SPARK_HOME/jars/*" \
      org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend \
      --driver-url "$SPARK_DRIVER_URL" --executor-id "$SPARK_EXECUTOR_ID" \
      --cores "$SPARK_EXECUTOR_CORES" --app-id "$SPARK_APPLICATION_ID" \
      --hostname "$SPARK_EXECUTOR_POD_IP" \
      --resourceProfileId "$SPARK_RESOURCE_PROFILE_ID" --podName "$SPARK_EXECUTOR_POD_NAME"
    ;;
  *)
    exec "$@"
    ;;
esac

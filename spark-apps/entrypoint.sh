#!/bin/bash
# What Spark's own images do for the arguments `driver` and `executor`; pip's pyspark comes without it.
set -eu

case "${1:-}" in
driver)
  shift
  exec "$SPARK_HOME/bin/spark-submit" --deploy-mode client "$@"
  ;;
executor)
  # Spark numbers the executor's Java options: SPARK_JAVA_OPT_0, _1, …
  options=()
  while IFS= read -r -d '' variable; do
    case "$variable" in SPARK_JAVA_OPT_*) options+=("${variable#*=}") ;; esac
  done < <(env -0 | sort -z -t_ -k4n)
  exec java "${options[@]}" "-Xms$SPARK_EXECUTOR_MEMORY" "-Xmx$SPARK_EXECUTOR_MEMORY" \
    -cp "${SPARK_CLASSPATH:-}:$SPARK_HOME/jars/*" \
    org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend \
    --driver-url "$SPARK_DRIVER_URL" --executor-id "$SPARK_EXECUTOR_ID" --cores "$SPARK_EXECUTOR_CORES" \
    --app-id "$SPARK_APPLICATION_ID" --hostname "$SPARK_EXECUTOR_POD_IP" \
    --resourceProfileId "$SPARK_RESOURCE_PROFILE_ID" --podName "$SPARK_EXECUTOR_POD_NAME"
  ;;
*)
  exec "$@"
  ;;
esac

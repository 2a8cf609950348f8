#!/usr/bin/env bash
# A Flink cluster of one JobManager and one TaskManager on this machine, in separate processes.
#
#   cluster.sh start FOLDER              write FOLDER/conf and FOLDER/lib, start both; logs and pids lie in FOLDER too
#   cluster.sh start-taskmanager FOLDER  start a TaskManager, for instance after one has died
#   cluster.sh stop FOLDER
#
# Environment: FLINK_HOME (as printed by install.sh), FLINK_PORT (REST, default 8081), FLINK_RPC_PORT (default 6123),
# FLINK_SLOTS (default 2), and FLINK_JOB_SERVER_JAR (its classes that Flink lacks go into the cluster's lib folder).
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
command=${1:?usage: cluster.sh start|start-taskmanager|stop FOLDER}
folder=${2:?usage: cluster.sh start|start-taskmanager|stop FOLDER}
: "${FLINK_HOME:?give FLINK_HOME, as printed by install.sh}"

mkdir -p "$folder"/{conf,lib,log,pid,tmp}
folder=$(cd "$folder" && pwd)
export FLINK_CONF_DIR=$folder/conf FLINK_LIB_DIR=$folder/lib FLINK_LOG_DIR=$folder/log FLINK_PID_DIR=$folder/pid

write_conf() {
  cp "$FLINK_HOME"/conf/log4j*.properties "$folder/conf/"
  # Flink 2 reads config.yaml and refuses the older name.
  local name=flink-conf.yaml
  [[ -f $FLINK_HOME/conf/config.yaml && ! -f $FLINK_HOME/conf/flink-conf.yaml ]] && name=config.yaml
  {
    cat "$here/flink-conf.yaml"
    echo "rest.port: ${FLINK_PORT:-8081}"
    echo "jobmanager.rpc.port: ${FLINK_RPC_PORT:-6123}"
    echo "taskmanager.numberOfTaskSlots: ${FLINK_SLOTS:-2}"
    echo "io.tmp.dirs: $folder/tmp"
  } >"$folder/conf/$name"
}

link_jars() {
  ln -sf "$FLINK_HOME"/lib/*.jar "$folder/lib/"
  if [[ -n ${FLINK_JOB_SERVER_JAR:-} && ! -f $folder/lib/beam-runner.jar ]]; then
    "${PYTHON:-python3}" "$here/runner_jar.py" "$FLINK_JOB_SERVER_JAR" "$folder/lib"
  fi
}

case $command in
start)
  write_conf
  link_jars
  "$FLINK_HOME/bin/jobmanager.sh" start
  "$FLINK_HOME/bin/taskmanager.sh" start
  ;;
start-taskmanager)
  "$FLINK_HOME/bin/taskmanager.sh" start
  ;;
stop)
  "$FLINK_HOME/bin/taskmanager.sh" stop-all || true
  "$FLINK_HOME/bin/jobmanager.sh" stop-all || true
  ;;
*)
  echo "cluster.sh: unknown command $command" >&2
  exit 2
  ;;
esac

#!/bin/bash
# sbatch examples/cluster/slurm.sh [FOLDER]
#
# Four processes share one experiment. FOLDER, by default output/cluster, must be one that all nodes see, or a bucket.
# The first one begins the plan; each may be killed, preempted or run out of time, and the others take over its work.
#SBATCH --job-name=assay
#SBATCH --array=1-4
#SBATCH --requeue
#SBATCH --signal=B:TERM@60
#SBATCH --open-mode=append
#SBATCH --output=assay-%A_%a.log
#SBATCH --cpus-per-task=1

assay run examples/cluster/config.yaml -o "${1:-output/cluster}" --shard "$SLURM_ARRAY_TASK_ID/4" &
worker=$!
trap 'kill -TERM "$worker"' TERM
code=0
wait "$worker" || code=$?
while kill -0 "$worker" 2>/dev/null; do # the trap ended the wait, not the process
  code=0
  wait "$worker" || code=$?
done
if [ "$code" -eq 130 ]; then # stopped, and work is left: 60 s before the time limit it is queued again
  scontrol requeue "${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID"
fi
exit "$code"

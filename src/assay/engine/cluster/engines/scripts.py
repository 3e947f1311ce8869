"""Files that start workers where a scheduler does it: a SLURM array, a Kubernetes Indexed Job.

Both count on a worker's exit codes (docs/worker.md): 0 there is nothing left to take, 75 it was asked to stop and
work is left, 2 and 5 trying again does not help.
"""

import re
import shlex
from collections.abc import Sequence
from typing import Literal

from assay.engine.cluster.root import Root
from assay.engine.cluster.shipping import variables
from assay.store.shared.objects import is_remote

STOPPED = 75  # as EX_TEMPFAIL of sysexits.h: the same command goes on
Kind = Literal["slurm", "k8s"]


def script(place: str, kind: Kind, count: int = 16) -> str:
    """The file that starts `count` workers of a root."""
    root = Root(place)
    address = root.objects.address
    generation = root.generation()
    names = variables(generation.config) if generation is not None else []
    return _slurm(address, count, names) if kind == "slurm" else _kubernetes(address, count, names)


def _slurm(place: str, count: int, names: Sequence[str]) -> str:
    needed = (
        f"# The environment that you submit from must have {', '.join(names)}.\n" if names else ""
    )
    return f"""#!/bin/bash
#SBATCH --job-name=assay
#SBATCH --array=1-{count}
#SBATCH --requeue
#SBATCH --signal=B:TERM@60
#SBATCH --open-mode=append
#SBATCH --output=assay-%A_%a.log
#SBATCH --cpus-per-task=1
##SBATCH --time=04:00:00
##SBATCH --gpus-per-task=1

# {count} workers of one plan. Each may be killed, preempted or run out of time: the others take over its work, and
# `sbatch` of this file again adds workers. 60 s before the time limit a worker commits what it has and is queued again.
{needed}
assay worker {shlex.quote(place)} --trust --shard "$SLURM_ARRAY_TASK_ID/{count}" &
worker=$!
trap 'kill -TERM "$worker"' TERM
code=0
wait "$worker" || code=$?
while kill -0 "$worker" 2>/dev/null; do # the trap ended the wait, not the worker
  code=0
  wait "$worker" || code=$?
done
if [ "$code" -eq {STOPPED} ]; then
  scontrol requeue "${{SLURM_ARRAY_JOB_ID}}_$SLURM_ARRAY_TASK_ID"
fi
exit "$code"
"""


def _kubernetes(place: str, count: int, names: Sequence[str]) -> str:
    name = re.sub(r"[^a-z0-9]+", "-", place.lower().rsplit("/", 1)[-1]).strip("-")[:50] or "plan"
    command = f'exec assay worker {shlex.quote(place)} --trust --shard "$((JOB_COMPLETION_INDEX + 1))/{count}"'
    secrets = "".join(
        f"""
            - name: {name}
              valueFrom: {{secretKeyRef: {{name: assay, key: {name}}}}}"""
        for name in names
    )
    environment = f"\n          env:{secrets}" if names else ""
    mounts, volumes = "", ""
    if not is_remote(place):
        mounts = (
            f"\n          volumeMounts:\n            - {{name: root, mountPath: {_quote(place)}}}"
        )
        volumes = """
      volumes:
        - name: root
          persistentVolumeClaim: {claimName: CLAIM} # one that many nodes may write to"""
    return f"""apiVersion: batch/v1
kind: Job
metadata:
  name: assay-{name}
spec:
  completionMode: Indexed
  completions: {count}
  parallelism: {count}
  backoffLimitPerIndex: 20
  podFailurePolicy:
    rules:
      - action: FailJob # the plan, the machine's files or the budget: another try does not help
        onExitCodes: {{containerName: worker, operator: In, values: [2, 5]}}
      - action: Ignore # asked to stop: another pod goes on
        onExitCodes: {{containerName: worker, operator: In, values: [{STOPPED}]}}
      - action: Ignore
        onPodConditions: [{{type: DisruptionTarget, status: "True"}}]
  template:
    spec:
      restartPolicy: Never
      terminationGracePeriodSeconds: 60
      containers:
        - name: worker
          image: IMAGE # with Assay, and its extra `cloud` for buckets
          command: [/bin/sh, -c]
          args:
            - {_quote(command)}{environment}
          resources:
            requests: {{cpu: "1", memory: 1Gi}}
            limits: {{memory: 2Gi}}{mounts}{volumes}
"""


def _quote(text: str) -> str:
    """A text of YAML."""
    return "'" + text.replace("'", "''") + "'"

#!/bin/sh
# On a machine of a Ray cluster, with FOLDER one that all nodes see, or a bucket:
#
#   sh examples/cluster/ray.sh FOLDER
#
# As a Ray job, which does not need the terminal that it was started from:
#
#   ray job submit --working-dir examples -- sh cluster/ray.sh FOLDER
#
# As many workers as fit; `on: {ray: {workers: 8, gpus: 1}}` in the config says otherwise.
exec assay run "$(dirname "$0")/config.yaml" -o "$1" --on ray

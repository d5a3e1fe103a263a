#!/bin/sh
# Examines a node after a job, so that the next one does not find it unfit, and keeps the documents (WEIR_KEEP). For
# slurm.conf: Epilog=/etc/slurm/weir/epilog.sh, with prolog.sh and fleet.conf beside it.
WEIR_WHEN=epilog exec "$(dirname "$0")/prolog.sh"

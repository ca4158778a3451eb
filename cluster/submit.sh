#!/usr/bin/env bash
# Plans a study; with --submit it is submitted. Everything else is passed on: cluster/submit.sh STUDY --submit --wait
set -euo pipefail
# What the caller had other programs load would keep this one from its own packages.
unset LD_PRELOAD PYTHONHOME PYTHONPATH

checkout=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
kcourt=$checkout/.venv/bin/kcourt
[[ -x $kcourt ]] || kcourt=kcourt

action=plan
arguments=()
for word in "$@"; do
  if [[ $word == --submit ]]; then action=submit; else arguments+=("$word"); fi
done
exec "$kcourt" study "$action" "${arguments[@]}"

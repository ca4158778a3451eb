#!/usr/bin/env bash
# Plans a study; with --submit it is submitted. Everything else is passed on: cluster/submit.sh STUDY --submit --wait
set -euo pipefail

checkout=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
kcourt=$checkout/.venv/bin/kcourt
[[ -x $kcourt ]] || kcourt=kcourt

action=plan
arguments=()
for word in "$@"; do
  if [[ $word == --submit ]]; then action=submit; else arguments+=("$word"); fi
done
exec "$kcourt" study "$action" "${arguments[@]}"

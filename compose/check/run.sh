#!/usr/bin/env bash
# compose.yaml as Docker Compose reads it: whole, only with its secrets, and without planted mistakes.
#   compose/check/run.sh PROGRAM      main.go, which `make compose` builds
set -euo pipefail
program=$(realpath "$1")
cd "$(dirname "$0")/.."
export BELFRY_HTTP_API_KEYS='[]' BELFRY_HTTP_WORKER_SECRET='a secret that is long enough'
# Beside the file, since paths in it are relative to it.
broken=$(mktemp --suffix .yaml -p .)
trap 'rm -f "$broken"' EXIT

refused() { # refused WHAT TEXT FILE: it is, and the text says why
  said=$("$program" "$3") && { echo "compose.yaml is taken $1" >&2; exit 1; }
  grep -q "$2" <<<"$said" || { echo "compose.yaml $1: $said" >&2; exit 1; }
}

planted() { # planted WHAT SED TEXT: a mistake is noticed, in these words
  sed "$2" compose.yaml >"$broken"
  if cmp -s compose.yaml "$broken"; then echo "$1 could not be planted" >&2; exit 1; fi
  refused "with $1" "$3" "$broken"
}

"$program" compose.yaml
for name in BELFRY_HTTP_API_KEYS BELFRY_HTTP_WORKER_SECRET; do
  (unset "$name"; refused "without $name" "$name" compose.yaml)
done
planted "a key that does not exist" 's/stop_grace_period: 60s/stop_grace_perod: 60s/' stop_grace_perod
planted "a dependency that does not exist" 's/depends_on: \[prometheus\]/depends_on: [prometheuz]/' prometheuz
planted "a volume that does not exist" 's/^  prometheus:$/  prometheuz:/' prometheus
echo "compose.yaml: as Docker Compose reads it"

#!/usr/bin/env bash
# Who is busy in the runs whose figures miss their goals; see benchmarks/threads.py.
set -euo pipefail
cd "$(dirname "$0")/.."
. benchmarks/broker.sh
start_broker 19392 18381

profile() { # profile NAME [SETTING=VALUE…] ARGUMENTS…
    local name=$1 settings arguments command
    shift
    split "$@"
    echo "# $command"
    env "${settings[@]}" .venv/bin/python benchmarks/threads.py .venv/bin/belfry bench "${arguments[@]}" \
        --runs 1 --output jsonl --bootstrap-servers "$servers" | tee "$results/profile-$name.txt"
}

.venv/bin/belfry bench fire --runs 2 --bootstrap-servers "$servers" > "$results/profile-warm-up.txt"
profile ingest-2 ingest --workers 2 --events 2000000
profile fire-2 fire --workers 2 --events 2000000
profile ingest-2-alone BELFRY_STANDBYS=0 ingest --workers 2 --events 2000000
profile fire-2-alone BELFRY_STANDBYS=0 fire --workers 2 --events 2000000
profile lateness lateness --rate 5000 --seconds 30
profile lateness-8 lateness --rate 5000 --seconds 30 --tenants 8
profile lateness-common lateness --rate 5000 --seconds 30 --common-topic

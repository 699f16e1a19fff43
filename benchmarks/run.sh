#!/usr/bin/env bash
# Every figure of docs/performance.md, on a broker of its own; results go to benchmarks/results/.
set -euo pipefail
cd "$(dirname "$0")/.."
. benchmarks/broker.sh
start_broker 19292 18281

run() { # run NAME [SETTING=VALUE…] ARGUMENTS…
    local name=$1 settings arguments command
    shift
    split "$@"
    echo "$command"
    { echo "# $command"; env "${settings[@]}" .venv/bin/belfry bench --runs "${RUNS:-3}" "${arguments[@]}" --output jsonl --bootstrap-servers "$servers"; } |
        tee "$results/$name.jsonl.part"
    mv "$results/$name.jsonl.part" "$results/$name.jsonl"
}

run raw-before raw
run ingest-1 ingest
run fire-1 fire
run fire-1-common fire --common-topic
run fire-every fire --kind EVERY --events 200000
run fire-cron fire --kind CRON --events 200000
run raw-between raw
run ingest-2 ingest --workers 2
run fire-2 fire --workers 2
run ingest-2-alone BELFRY_STANDBYS=0 ingest --workers 2
run fire-2-alone BELFRY_STANDBYS=0 fire --workers 2
run fire-2-common BELFRY_STANDBYS=0 fire --workers 2 --common-topic
run raw-after raw
run ingest-outcomes ingest --outcomes
run lateness-1000 lateness --rate 1000
run lateness-5000 lateness --rate 5000
run lateness-5000-8 lateness --rate 5000 --tenants 8
run lateness-5000-common lateness --rate 5000 --common-topic
verify_transactions false
run lateness-5000-unverified UNVERIFIED=1 lateness --rate 5000
verify_transactions true
run lateness-idle lateness --rate 1 --seconds 200 --tenants 1 --runs 1
run recovery recovery --events 1000000 --runs 1
run restart restart --events 1000000 --runs 1
if [ -n "${LONG:-}" ]; then
    run pending-five-million ingest --pending 5000000 --runs 1
    for sweep in pending payload partitions; do
        run "curve-$sweep" curve --sweep "$sweep" --runs 1
    done
    run curve-tenants curve --sweep tenants --steps 10,100,1000,10000 --partitions 1 --events 100000 --runs 1
    .venv/bin/python benchmarks/plot.py "$results"
fi
.venv/bin/python benchmarks/table.py "$results" | tee "$results/table.md"

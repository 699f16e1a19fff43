#!/usr/bin/env bash
# What many tenants, and very different ones, do to each other, on a broker of its own; see benchmarks/tenants.py.
set -euo pipefail
cd "$(dirname "$0")/.."
. benchmarks/broker.sh
start_broker 19492 18481
BELFRY_BOOTSTRAP_SERVERS=$servers .venv/bin/python benchmarks/tenants.py | tee "$results/tenants.jsonl"
for tenants in 1 97 1000; do
    for guarantee in EXACTLY_ONCE AT_LEAST_ONCE; do
        .venv/bin/python -m belfry.cli bench fire --events 100000 --tenants "$tenants" --runs 1 \
            --guarantee "$guarantee" --output json --bootstrap-servers "$servers" |
            sed "s/^{/{\"tenants\":$tenants,\"guarantee\":\"$guarantee\",/" | tee -a "$results/tenants.jsonl"
    done
done

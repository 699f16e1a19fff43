#!/usr/bin/env bash
# How quick the console's pages are while events fire, on a broker of its own; see benchmarks/console.py.
set -euo pipefail
cd "$(dirname "$0")/.."
. benchmarks/broker.sh
start_broker 19492 18481
BELFRY_BOOTSTRAP_SERVERS=$servers .venv/bin/python benchmarks/console.py | tee "$results/console.jsonl"

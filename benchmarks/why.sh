#!/usr/bin/env bash
# How long `belfry why` takes over seven days of history, on a broker of its own; see benchmarks/why.py.
set -euo pipefail
cd "$(dirname "$0")/.."
. benchmarks/broker.sh
start_broker 19692 18681
BELFRY_BOOTSTRAP_SERVERS=$servers .venv/bin/python benchmarks/why.py | tee "$results/why.jsonl"

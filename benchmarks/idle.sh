#!/usr/bin/env bash
# What a worker with many partitions takes while nothing happens, on a broker of its own; see benchmarks/idle.py.
set -euo pipefail
cd "$(dirname "$0")/.."
. benchmarks/broker.sh
start_broker 19592 18581
BELFRY_BOOTSTRAP_SERVERS=$servers .venv/bin/python benchmarks/idle.py | tee "$results/idle-${PARTITIONS:-64}.jsonl"

#!/usr/bin/env bash
# How long a worker without local state takes, on a broker of its own; see benchmarks/restoring.py.
set -euo pipefail
cd "$(dirname "$0")/.."
. benchmarks/broker.sh
start_broker 19592 18581
BELFRY_BOOTSTRAP_SERVERS=$servers .venv/bin/python benchmarks/restoring.py | tee "$results/restoring.jsonl"

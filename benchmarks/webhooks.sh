#!/usr/bin/env bash
# How fast webhooks are delivered, on a broker of its own; see benchmarks/webhooks.py.
set -euo pipefail
cd "$(dirname "$0")/.."
. benchmarks/broker.sh
start_broker 19692 18681
BELFRY_BOOTSTRAP_SERVERS=$servers .venv/bin/python benchmarks/webhooks.py | tee "$results/webhooks.jsonl"

#!/usr/bin/env bash
# How quick HTTP is while events fire, on a broker of its own; see benchmarks/http_load.py.
set -euo pipefail
cd "$(dirname "$0")/.."
. benchmarks/broker.sh
start_broker 19392 18381
BELFRY_BOOTSTRAP_SERVERS=$servers .venv/bin/python benchmarks/http_load.py | tee "$results/http.jsonl"

#!/usr/bin/env bash
# How fast backups and restores are, on belfries of their own; see benchmarks/backups.py.
set -euo pipefail
cd "$(dirname "$0")/.."
mkdir -p benchmarks/results
.venv/bin/python benchmarks/backups.py | tee benchmarks/results/backups.jsonl

#!/usr/bin/env bash
# belfry beside a scheduler that is written with Kafka Streams, on a broker of its own; see benchmarks/peer.py.
set -euo pipefail
cd "$(dirname "$0")/.."
rm -rf benchmarks/peer/target/jars
mvn -q -B -f benchmarks/peer/pom.xml compile dependency:copy-dependencies -DoutputDirectory=target/jars
. benchmarks/broker.sh
start_broker 19792 18781
BELFRY_BOOTSTRAP_SERVERS=$servers .venv/bin/python benchmarks/peer.py | tee "$results/peer.jsonl"
.venv/bin/python benchmarks/peer_table.py "$results/peer.jsonl" | tee "$results/peer.md"

# A broker of its own for a benchmark, on these ports; sourced. Sets $servers and $results.
start_broker() { # start_broker KAFKA_PORT REGISTRY_PORT
    results=benchmarks/results
    mkdir -p "$results"
    home=$(mktemp -d)
    .venv/bin/python -m belfry.cli dev --no-worker --data-dir "$home/stack" --kafka-port "$1" \
        --registry-port "$2" --ready-file "$home/ready.json" > "$home/log" 2>&1 &
    stack=$!
    trap 'kill "$stack"; wait "$stack" || true; rm -rf "$home"' EXIT
    until [ -s "$home/ready.json" ]; do
        kill -0 "$stack" || { cat "$home/log"; exit 1; }
        sleep 0.2
    done
    servers=$(.venv/bin/python -c 'import json,sys; print(json.load(open(sys.argv[1]))["bootstrap_servers"])' "$home/ready.json")
}

# Whether the broker asks, at each partition's first records, if their transaction knows of it.
verify_transactions() { # verify_transactions true|false
    .venv/bin/python - "$servers" "$1" <<'EOF'
import sys

from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource

servers, value = sys.argv[1:]
admin = AdminClient({"bootstrap.servers": servers})
setting = ConfigEntry(
    "transaction.partition.verification.enable",
    value,
    incremental_operation=AlterConfigOpType.SET,
)
broker = str(*admin.list_topics(timeout=10).brokers)
resource = ConfigResource("broker", broker, incremental_configs=[setting])
for done in admin.incremental_alter_configs([resource]).values():
    done.result()
EOF
}

split() { # split [SETTING=VALUE…] ARGUMENTS…; sets $settings, $arguments and the $command that they are
    settings=()
    while [[ $1 == *=* ]]; do
        settings+=("$1")
        shift
    done
    arguments=("$@")
    command="${settings[*]:+${settings[*]} }belfry bench $*"
}

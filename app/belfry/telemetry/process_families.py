"""Metrics of a worker as a process: its health, its port, its clients and what it runs on.

    who asks it      HTTP by route, API keys, the audit log, spans
    whom it asks     Kafka's brokers by client, the schema registry, webhooks
    what it runs on  processor, memory, files, disk

All of it is about one process, so a sum over workers says something of counters alone.  What is
absent is not 0: Linux alone tells of memory and files, and a key without an end has no instant of
it.

A mean is left to the query, as a quotient of two rises, since means cannot be added up over
workers.  So a round trip of the last minute is

    rate(belfry_client_round_trip_seconds_total[1m]) / rate(belfry_client_answers_total[1m])

Labels are bounded by what belfry has: routes of its own, kinds of clients, brokers, and API keys by
the beginning of their digest, which opens nothing.
"""

from __future__ import annotations

from typing import Final

from belfry.telemetry.family import Family

OF_PROCESSES: Final = (
    Family(
        "belfry_ready",
        "gauge",
        "1 while /healthz/ready answers 200: all owned partitions fire. 0 while something is"
        " missing, from the first second of a worker on.",
    ),
    Family(
        "belfry_build_info",
        "gauge",
        "Always 1; the labels tell the version, and which belfry it is.",
        ("version", "app_id"),
    ),
    Family("belfry_process_cpu_seconds_total", "counter", "Processor time of this process."),
    Family("belfry_process_resident_memory_bytes", "gauge", "Memory that this process holds."),
    Family("belfry_process_virtual_memory_bytes", "gauge", "Memory that it has addresses for."),
    Family("belfry_process_open_fds", "gauge", "Files and connections that are open."),
    Family("belfry_process_max_fds", "gauge", "Most of these that it may have open."),
    Family(
        "belfry_process_start_time_seconds", "gauge", "When this process began, in epoch seconds."
    ),
    Family("belfry_process_threads", "gauge", "Threads of Python."),
    Family(
        "belfry_disk_free_bytes",
        "gauge",
        "Free space on the disk of the data directory.",
    ),
    Family(
        "belfry_disk_reserve_bytes",
        "gauge",
        "Free space without which the worker gives its partitions away (BELFRY_DISK_RESERVE_MB).",
    ),
    Family(
        "belfry_http_requests_total",
        "counter",
        "Requests over HTTP, by route and status; (other) is what no route answered.",
        ("method", "route", "status"),
    ),
    Family(
        "belfry_http_request_seconds",
        "histogram",
        "Time from a request over HTTP to the end of its answer; a write waits for its verdict.",
        ("route",),
    ),
    Family(
        "belfry_api_keys",
        "gauge",
        "API keys of the list, by state: valid, expiring (within 14 days) or expired.",
        ("state",),
    ),
    Family(
        "belfry_api_key_expiry_timestamp_seconds",
        "gauge",
        "When a key of the list ends, by the beginning of its digest; absent where it does not.",
        ("key",),
    ),
    Family(
        "belfry_api_key_last_use_timestamp_seconds",
        "gauge",
        "When a key was shown to this worker last; absent where it was not.",
        ("key",),
    ),
    Family(
        "belfry_api_key_uses_total",
        "counter",
        "Requests to this worker that showed a key, and were let in.",
        ("key",),
    ),
    Family(
        "belfry_audit_events_total",
        "counter",
        "Events of the audit log, by what became of them: written, or lost.",
        ("outcome",),
    ),
    Family(
        "belfry_spans_total",
        "counter",
        "Spans, by what became of them: exported; dropped, because too many waited; or failed,"
        " because the collector did not take them.",
        ("outcome",),
    ),
    Family(
        "belfry_registry_lookups_total",
        "counter",
        "Lookups of requests' schemas at the schema registry, by whether they were answered, or"
        " unanswered because it is away or fails.",
        ("outcome",),
    ),
    Family(
        "belfry_payloads_stored_total",
        "counter",
        "Large payloads on their way to the store that keeps them out of Kafka: stored, or failed"
        " at a try. While some fail, requests with such payloads are refused.",
        ("outcome",),
    ),
    Family(
        "belfry_webhook_hosts_silent",
        "gauge",
        "Hosts of webhooks that have not answered the last 5 posts or more of this worker.",
    ),
    Family(
        "belfry_client_answers_total",
        "counter",
        "Answers of a broker to clients of a kind: writer, requests, tenant_inputs, changelog,"
        " deliveries, targets. Those to fetches, for which brokers wait, are left out.",
        ("client", "broker"),
    ),
    Family(
        "belfry_client_round_trip_seconds_total",
        "counter",
        "Sum of the times from these requests to their answers; divided by the number of answers it"
        " is the mean.",
        ("client", "broker"),
    ),
    Family(
        "belfry_client_throttled_seconds_total",
        "counter",
        "For how long a broker's quotas have held such clients back.",
        ("client", "broker"),
    ),
    Family(
        "belfry_client_disconnects_total",
        "counter",
        "Connections of such clients to a broker that ended.",
        ("client", "broker"),
    ),
    Family(
        "belfry_client_request_errors_total",
        "counter",
        "Requests of such clients that could not be sent, or had no answer in time.",
        ("client", "broker"),
    ),
    Family(
        "belfry_client_requests_in_flight",
        "gauge",
        "Requests of such clients that are queued, or have no answer yet.",
        ("client",),
    ),
    Family(
        "belfry_client_queue_records",
        "gauge",
        "Records that wait in such clients: to be sent, or to be taken.",
        ("client",),
    ),
)

# Of `belfry verify` that goes on for ever, a process of its own; no worker shows them.  Each kind
# of finding stands at 0 from the start, and a finding is counted once, as it is told of once: so
# an alert on any lasts until somebody has read what was found and started the process again.
OF_VERIFICATION: Final = (
    Family(
        "belfry_verify_findings_total",
        "counter",
        "Findings of `belfry verify`, by kind, since it was started; each is told once.",
        ("kind",),
    ),
    Family(
        "belfry_verify_passes_total",
        "counter",
        "Its passes over all topics: complete, or failed, as where no broker answers.",
        ("outcome",),
    ),
    Family(
        "belfry_verify_last_complete_timestamp_seconds",
        "gauge",
        "When its last complete pass ended, in epoch seconds; before the first one, when it was"
        " started.",
    ),
    Family(
        "belfry_verify_behind_records",
        "gauge",
        "Offsets of the changelog that it has not read yet, up to the ends that it saw last.",
    ),
)

# Of `belfry mirror run`; no worker shows it.
OF_MIRROR: Final = (
    Family(
        "belfry_mirror_carried_records_total",
        "counter",
        "Records that `belfry mirror run` has carried to its cluster since it was started.",
    ),
    Family(
        "belfry_mirror_failures_total",
        "counter",
        "What failed of it and is tried again, as where no broker answers.",
    ),
    Family(
        "belfry_mirror_behind_records",
        "gauge",
        "Offsets of the source that are not carried yet, of all topics, as it saw last.",
    ),
    Family(
        "belfry_mirror_behind_seconds",
        "gauge",
        "How old the instant is up to which all is carried, of the partition furthest behind.",
    ),
    Family(
        "belfry_mirror_last_look_timestamp_seconds",
        "gauge",
        "When it saw last how far behind it is, in epoch seconds; at first, when it was started.",
    ),
)

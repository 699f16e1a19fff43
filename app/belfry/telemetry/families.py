"""The names and meanings of all metrics.

The contract, `docs/metrics.md` and the dashboards rely on this list.  Units are seconds.
"""

from __future__ import annotations

from typing import Final, NamedTuple


class Family(NamedTuple):
    """One metric: its public name, its kind, what it means and its labels."""

    name: str
    kind: str
    meaning: str
    labels: tuple[str, ...] = ()


FAMILIES: Final = (
    Family("belfry_requests_total", "counter", "Verdicts on requests, by outcome.", ("outcome",)),
    Family("belfry_rejected_total", "counter", "Refused requests, by error code.", ("code",)),
    Family("belfry_fired_total", "counter", "Events fired in committed transactions."),
    Family("belfry_missed_total", "counter", "Occurrences given up by their misfire policy."),
    Family("belfry_unacknowledged_total", "counter", "Fires not acknowledged in time."),
    Family("belfry_rederived_total", "counter", "Occurrences that new time zone data has moved."),
    Family(
        "belfry_unreadable_total",
        "counter",
        "Due schedules held back because a later release or newer time zone data made them.",
    ),
    Family(
        "belfry_bulk_schedules_total",
        "counter",
        "Schedules that bulk jobs have touched, by the jobs' action and by outcome.",
        ("action", "outcome"),
    ),
    Family("belfry_completed_total", "counter", "Recurring schedules that fired their last."),
    Family(
        "belfry_deliveries_total",
        "counter",
        "Attempts at HTTP deliveries, by what followed: DELIVERED, RETRIED or FAILED.",
        ("outcome",),
    ),
    Family(
        "belfry_audit_events_total",
        "counter",
        "Events of the audit log, by what became of them: written, or lost.",
        ("outcome",),
    ),
    Family(
        "belfry_metered_periods_total",
        "counter",
        "Records of usage that partitions wrote: one for each tenant and period in which it used"
        " something.",
    ),
    Family(
        "belfry_spans_total",
        "counter",
        "Spans, by what became of them: exported; dropped, because too many waited; or failed,"
        " because the collector did not take them.",
        ("outcome",),
    ),
    Family(
        "belfry_slo_asked_total",
        "counter",
        "Events that the canary had to schedule; those count that nobody asked for in time.",
    ),
    Family(
        "belfry_slo_registered_total",
        "counter",
        "Events of the canary that were accepted within 5 s, before they were due.",
    ),
    Family("belfry_slo_fired_total", "counter", "Events of the canary that a reader has seen."),
    Family(
        "belfry_slo_fired_in_time_total",
        "counter",
        "Events of the canary that a reader has seen within 1 s of their due instant.",
    ),
    Family(
        "belfry_slo_lateness_seconds",
        "histogram",
        "Time from the due instant of the canary's events to the reader that has them.",
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
        "belfry_bucket_drained_lateness_seconds",
        "histogram",
        "Minute buckets that have ended, by how long after its last due instant each was empty.",
    ),
    Family(
        "belfry_fire_lateness_seconds",
        "histogram",
        "Time from the due instant of an event to the commit with which readers see it.",
    ),
    Family(
        "belfry_pending_schedules",
        "gauge",
        "Schedules that wait for their next due instant.",
        ("partition",),
    ),
    Family(
        "belfry_oldest_due_seconds",
        "gauge",
        "How long the oldest due event has been waiting to fire, whatever for; 0 when none is.",
        ("partition",),
    ),
    Family(
        "belfry_waiting_seconds",
        "gauge",
        "The same by what is waited for: firing, tenant_queue, tenant_blocked, catch_up, ack_lock,"
        " later_release.",
        ("partition", "waiting_for"),
    ),
    Family(
        "belfry_ingest_lag_records",
        "gauge",
        "Requests in the log that have no verdict yet.",
        ("partition",),
    ),
    Family(
        "belfry_changelog_lag_records",
        "gauge",
        "Changelog offsets that a take-over or a standby of this worker has still to read.",
        ("partition",),
    ),
    Family(
        "belfry_open_transaction_seconds",
        "gauge",
        "For how long a transaction has been holding readers of the changelog, the requests or the"
        " policies back; a stranger's, or one that hangs. Absent where there is none.",
        ("topic", "partition"),
    ),
    Family(
        "belfry_foreign_records_total",
        "counter",
        "Records met in the changelog, or among the policies, that were skipped because nobody of"
        " belfry wrote them.",
        ("topic",),
    ),
    Family(
        "belfry_transaction_seconds",
        "histogram",
        "Duration of a transaction, from its first record to the answer to its commit.",
    ),
    Family(
        "belfry_recovery_seconds",
        "histogram",
        "Time from getting a partition to its first step.",
    ),
    Family(
        "belfry_partition_owned",
        "gauge",
        "1 for a partition that this worker owns, 0 for one that it gave away.",
        ("partition",),
    ),
    Family(
        "belfry_agent_events_total",
        "counter",
        "Batches that were not taken from a Faust agent (failed), and agents that passed nothing on"
        " and were started again (restarted).",
        ("agent", "event"),
    ),
    Family(
        "belfry_standbys_warm",
        "gauge",
        "Partitions of other workers that this one could take over at once.",
    ),
    Family(
        "belfry_clock_skew_seconds",
        "gauge",
        "This machine's clock minus the broker's; positive when it is ahead.",
    ),
    Family(
        "belfry_topics_to_make",
        "gauge",
        "Output topics of new tenants that are still to be made.",
    ),
    Family(
        "belfry_firing_paused",
        "gauge",
        "1 while firing is paused because the clock cannot be trusted.",
    ),
    Family(
        "belfry_ready",
        "gauge",
        "1 while /healthz/ready answers 200: all owned partitions fire. 0 while something is"
        " missing, from the first second of a worker on.",
    ),
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
        "belfry_registry_lookups_total",
        "counter",
        "Lookups of requests' schemas at the schema registry, by whether they were answered, or"
        " unanswered because it is away or fails.",
        ("outcome",),
    ),
    Family(
        "belfry_webhook_hosts_silent",
        "gauge",
        "Hosts of webhooks that have not answered the last 5 posts or more of this worker.",
    ),
    Family(
        "belfry_build_info",
        "gauge",
        "Always 1; the labels tell the version, and which belfry it is.",
        ("version", "app_id"),
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
        "belfry_client_answers_total",
        "counter",
        "Answers of a broker to clients of a kind: writer, requests, tenant_inputs, changelog."
        " Those to fetches, for which brokers wait, are left out.",
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
        "belfry_store_rows",
        "gauge",
        "Rows of a partition's local store, as RocksDB estimates them; owned or stood by for.",
        ("partition",),
    ),
    Family("belfry_store_disk_bytes", "gauge", "Files of such a store.", ("partition",)),
    Family(
        "belfry_store_memory_bytes",
        "gauge",
        "Memory of such a store: memory tables, cached blocks and indexes.",
        ("partition",),
    ),
    Family(
        "belfry_store_merge_bytes",
        "gauge",
        "Bytes that RocksDB has still to rewrite to merge the files of such a store.",
        ("partition",),
    ),
    Family(
        "belfry_store_errors",
        "gauge",
        "Errors of RocksDB's own threads since such a store was opened: its disk fails or is full.",
        ("partition",),
    ),
    Family(
        "belfry_tenant_pending_schedules",
        "gauge",
        "Schedules of a tenant that wait for their next due instant.",
        ("tenant",),
    ),
    Family("belfry_tenant_fired_total", "counter", "Events of a tenant that fired.", ("tenant",)),
    Family(
        "belfry_tenant_lateness_seconds_total",
        "counter",
        "Sum, over the events of a tenant that fired, of the time from due to the step that fired"
        " it; divided by the number of fires it is their mean lateness.",
        ("tenant",),
    ),
    Family(
        "belfry_tenant_accepted_total",
        "counter",
        "Requests of a tenant that brought something to keep, as metering counts them.",
        ("tenant",),
    ),
    Family(
        "belfry_tenant_delivered_total",
        "counter",
        "Deliveries to targets of a tenant that succeeded.",
        ("tenant",),
    ),
    Family(
        "belfry_tenant_rejected_total",
        "counter",
        "Refused requests of a tenant; those that name no known tenant count as the rest.",
        ("tenant",),
    ),
    Family(
        "belfry_tenant_waiting_seconds",
        "gauge",
        "How long the oldest due event of a tenant has been waiting, by what for; 0 where nothing"
        " is due yet. Absent for a tenant that waits for nothing.",
        ("tenant", "cause"),
    ),
    Family(
        "belfry_tenants_waiting",
        "gauge",
        "Tenants whose events wait, by what for: output_topic, paused, not_served, rate, priority,"
        " queue, ack_lock, catch_up, later_release.",
        ("cause",),
    ),
    Family(
        "belfry_tenants_waiting_longest_seconds",
        "gauge",
        "How long the longest of these has been waiting.",
        ("cause",),
    ),
)

BY_NAME: Final = {family.name: family for family in FAMILIES}


def described(name: str) -> tuple[str, str]:
    """Name and meaning of a metric."""
    return name, BY_NAME[name].meaning

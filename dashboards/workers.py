"""What the dashboard of operators shows of partitions, clients, processes and the canary."""

from __future__ import annotations

from typing import Final

from dashboards.parts import Chart, Group, Query, quantile

TARGETS: Final = "rate(belfry_delivery_seconds_bucket[$__rate_interval])"

WORKERS: Final = (
    Group(
        "Partitions",
        (
            Chart(
                "Owner of each partition",
                "Which worker owns which partition; two bars at once are a hand-over.",
                "short",
                (
                    Query(
                        "{{partition}} {{instance}}",
                        "sum by (partition, instance) (belfry_partition_owned) > 0",
                    ),
                ),
            ),
            Chart(
                "Recovery",
                "Time from getting a partition to its first step, in the last ten minutes.",
                "s",
                (Query("p99", quantile(0.99, "increase(belfry_recovery_seconds_bucket[10m])")),),
            ),
            Chart(
                "Changelog still to be read",
                "What take-overs and standbys have not read yet; near zero for a warm standby.",
                "short",
                (
                    Query(
                        "{{instance}} {{partition}}",
                        "sum by (instance, partition) (belfry_changelog_lag_records)",
                    ),
                ),
            ),
            Chart(
                "Key groups",
                "Groups that lie away from their homes, are on their way, and what waits for them."
                " Empty where none has ever moved.",
                "short",
                (
                    Query("away", "sum(belfry_key_groups_away)"),
                    Query("on their way", "sum(belfry_key_groups_moving)"),
                    Query("requests that wait", "sum(belfry_key_group_requests_waiting)"),
                    Query(
                        "moves that {{outcome}}",
                        "sum by (outcome) (increase(belfry_key_group_moves_total[5m]))",
                    ),
                ),
            ),
            Chart(
                "Checkpoints",
                "How old the newest checkpoint of a partition is, and where the state of partitions"
                " came from. Empty where none are kept.",
                "short",
                (
                    Query(
                        "seconds since that of {{partition}}",
                        "time() - max by (partition) (belfry_checkpoint_timestamp_seconds)",
                    ),
                    Query(
                        "restored from {{source}}",
                        "sum by (source) (increase(belfry_restores_total[5m]))",
                    ),
                    Query(
                        "checkpoints {{outcome}}",
                        "sum by (outcome) (increase(belfry_checkpoints_total[5m]))",
                    ),
                    Query("bytes sent", "sum(increase(belfry_checkpoint_sent_bytes_total[5m]))"),
                    Query(
                        "bytes for other workers",
                        "sum(increase(belfry_checkpoint_served_bytes_total[5m]))",
                    ),
                    Query(
                        "bytes fetched from {{source}}",
                        "sum by (source) (increase(belfry_checkpoint_fetched_bytes_total[5m]))",
                    ),
                ),
            ),
            Chart(
                "Transaction",
                "Duration of transactions, from the first record to the answer to the commit.",
                "s",
                (
                    Query("p50", quantile(0.5, "rate(belfry_transaction_seconds_bucket[1m])")),
                    Query("p99", quantile(0.99, "rate(belfry_transaction_seconds_bucket[1m])")),
                ),
            ),
            Chart(
                "Clock skew",
                "Each worker's clock minus the broker's; firing pauses beyond the tolerance.",
                "s",
                (Query("{{instance}}", "belfry_clock_skew_seconds"),),
                lowest=None,
            ),
            Chart(
                "Transactions that stay open",
                "For how long a stranger's transaction, or one that hangs, has been holding"
                " belfry's readers back. In the changelog nobody can take the partition"
                " over meanwhile.",
                "s",
                (
                    Query(
                        "{{topic}}/{{partition}}",
                        "max by (topic, partition) (belfry_open_transaction_seconds)",
                    ),
                ),
            ),
            Chart(
                "Records that nobody of belfry wrote",
                "What others wrote into belfry's own topics: it is skipped, and the"
                " worker's log has the offsets. Find out who may write there.",
                "short",
                (
                    Query(
                        "{{topic}}",
                        "sum by (topic) (increase(belfry_foreign_records_total[$__rate_interval]))",
                    ),
                ),
            ),
            Chart(
                "Topics to make",
                "Output topics of new tenants that are still to be made; their events wait.",
                "short",
                (Query("{{instance}}", "belfry_topics_to_make"),),
            ),
            Chart(
                "Agents that failed or were started again",
                "Batches that were not taken from a Faust agent, and agents that passed"
                " nothing on and were started again. Nothing is lost by either; see the"
                " worker's log for why.",
                "short",
                (
                    Query(
                        "{{agent}} {{event}}",
                        "sum by (agent, event)"
                        " (increase(belfry_agent_events_total[$__rate_interval]))",
                    ),
                ),
            ),
        ),
    ),
    Group(
        "Kafka clients",
        (
            Chart(
                "Mean round trip to a broker",
                "From a request to its answer; without fetches, for which brokers wait. A broker"
                " that is slow for all is busy, and one that is slow for a worker is far away.",
                "s",
                (
                    Query(
                        "{{client}} {{broker}}",
                        "sum by (client, broker)"
                        " (rate(belfry_client_round_trip_seconds_total[$__rate_interval]))"
                        " / sum by (client, broker)"
                        " (rate(belfry_client_answers_total[$__rate_interval]))",
                    ),
                ),
            ),
            Chart(
                "Requests in flight, and records that wait in clients",
                "What was not answered yet, and what waits to be sent or taken.",
                "short",
                (
                    Query(
                        "requests {{client}} {{instance}}",
                        "belfry_client_requests_in_flight",
                    ),
                    Query("records {{client}} {{instance}}", "belfry_client_queue_records"),
                ),
            ),
            Chart(
                "Connections that ended, and requests that failed, in five minutes",
                "A few are usual where a broker is restarted.",
                "short",
                (
                    Query(
                        "connections {{client}} {{broker}}",
                        "sum by (client, broker) (increase(belfry_client_disconnects_total[5m]))",
                    ),
                    Query(
                        "requests {{client}} {{broker}}",
                        "sum by (client, broker)"
                        " (increase(belfry_client_request_errors_total[5m]))",
                    ),
                ),
            ),
            Chart(
                "Share of the time in which quotas hold clients back",
                "Of each broker; above 0 events come out later. Raise the quotas of the principal.",
                "percentunit",
                (
                    Query(
                        "{{client}} {{broker}} {{instance}}",
                        "sum by (client, broker, instance)"
                        " (rate(belfry_client_throttled_seconds_total[$__rate_interval]))",
                    ),
                ),
            ),
        ),
    ),
    Group(
        "Deliveries and traces",
        (
            Chart(
                "HTTP deliveries a second",
                "Attempts at HTTP deliveries, by what followed.",
                "ops",
                (
                    Query(
                        "{{outcome}}",
                        "sum by (outcome) (rate(belfry_deliveries_total[$__rate_interval]))",
                    ),
                ),
            ),
            Chart(
                "Removed before it was delivered",
                "Offsets that retention removed before a dispatcher came to them, in an hour.",
                "short",
                (
                    Query(
                        "{{topic}}",
                        "sum by (topic) (increase(belfry_deliveries_removed_total[1h]))",
                    ),
                ),
            ),
            Chart(
                "Time until a target answers",
                "Of one post, or of one record for a topic; attempts that wait are not among them.",
                "s",
                (
                    Query("{{kind}} p50", quantile(0.5, TARGETS, "kind")),
                    Query("{{kind}} p99", quantile(0.99, TARGETS, "kind")),
                ),
            ),
            Chart(
                "Spans a second, by what became of them",
                "dropped: too many waited for the collector. failed: it did not take them."
                " Where nothing is traced, all are 0.",
                "short",
                (Query("{{outcome}}", "sum by (outcome) (rate(belfry_spans_total[1m]))"),),
            ),
        ),
    ),
    Group(
        "Canary",
        (
            Chart(
                "Canary: share accepted, arrived, in time",
                "Of the events that belfry schedules to itself, over an hour; empty where"
                " the canary is off.",
                "percentunit",
                (
                    Query(
                        "accepted",
                        "sum(increase(belfry_slo_registered_total[1h])) /"
                        " sum(increase(belfry_slo_asked_total[1h]))",
                        everywhere=True,
                    ),
                    Query(
                        "arrived",
                        "sum(increase(belfry_slo_fired_total[1h])) /"
                        " sum(increase(belfry_slo_registered_total[1h]))",
                        everywhere=True,
                    ),
                    Query(
                        "within 1 s",
                        "sum(increase(belfry_slo_fired_in_time_total[1h])) /"
                        " sum(increase(belfry_slo_registered_total[1h]))",
                        everywhere=True,
                    ),
                ),
            ),
            Chart(
                "Canary: lateness for readers",
                "From the due instant to a reader of committed records.",
                "s",
                (
                    Query(
                        "median",
                        quantile(0.5, "rate(belfry_slo_lateness_seconds_bucket[5m])"),
                        everywhere=True,
                    ),
                    Query(
                        "99 %",
                        quantile(0.99, "rate(belfry_slo_lateness_seconds_bucket[5m])"),
                        everywhere=True,
                    ),
                ),
            ),
        ),
    ),
    Group(
        "Processes and stores",
        (
            Chart(
                "Processor and threads of each process",
                "Cores in use, threads of Python, and hours since the process began.",
                "short",
                (
                    Query("cores {{instance}}", "rate(belfry_process_cpu_seconds_total[1m])"),
                    Query("threads {{instance}}", "belfry_process_threads"),
                    Query(
                        "hours {{instance}}", "(time() - belfry_process_start_time_seconds) / 3600"
                    ),
                ),
            ),
            Chart(
                "Memory of each process",
                "Held by the process, and for which it has addresses.",
                "bytes",
                (
                    Query("held {{instance}}", "belfry_process_resident_memory_bytes"),
                    Query("addresses {{instance}}", "belfry_process_virtual_memory_bytes"),
                ),
            ),
            Chart(
                "Open files, part of those that may be open",
                "Files and connections. A process that has none left can neither take"
                " connections nor merge its store.",
                "percentunit",
                (Query("{{instance}}", "belfry_process_open_fds / belfry_process_max_fds"),),
            ),
            Chart(
                "Local stores: disk, memory, and what is to be merged",
                "Owned and stood by for. What is to be merged grows where the disk is too slow.",
                "bytes",
                (
                    Query("disk {{instance}}", "sum by (instance) (belfry_store_disk_bytes)"),
                    Query("memory {{instance}}", "sum by (instance) (belfry_store_memory_bytes)"),
                    Query(
                        "to be merged {{instance}}", "sum by (instance) (belfry_store_merge_bytes)"
                    ),
                ),
            ),
            Chart(
                "Local stores: rows and errors",
                "Rows as RocksDB estimates them, and errors of its own threads: a disk that"
                " fails or is full.",
                "short",
                (
                    Query("rows of {{partition}}", "sum by (partition) (belfry_store_rows)"),
                    Query(
                        "errors of {{partition}}, {{instance}}",
                        "sum by (partition, instance) (belfry_store_errors)",
                    ),
                ),
            ),
        ),
    ),
    Group(
        "Readiness, disks, registry and hosts",
        (
            Chart(
                "Workers that are ready",
                "1 while all owned partitions of a worker fire; /healthz/ready says what is"
                " missing where it is 0.",
                "short",
                (Query("{{instance}}", "belfry_ready"),),
            ),
            Chart(
                "Free disk, and the reserve",
                "Below the reserve a worker gives its partitions away.",
                "bytes",
                (
                    Query("{{instance}} free", "belfry_disk_free_bytes"),
                    Query("{{instance}} reserve", "belfry_disk_reserve_bytes"),
                ),
            ),
            Chart(
                "Lookups at the schema registry a second",
                "Unanswered: the registry is away or fails.",
                "short",
                (
                    Query(
                        "{{outcome}}",
                        "sum by (outcome) (rate(belfry_registry_lookups_total[1m]))",
                    ),
                ),
            ),
            Chart(
                "Large payloads",
                "Payloads that went to the store of large ones. Where some fail, requests with"
                " such payloads are refused: look at the store, and at the worker's log.",
                "ops",
                (
                    Query(
                        "{{outcome}}",
                        "sum by (outcome) (rate(belfry_payloads_stored_total[1m]))",
                    ),
                ),
            ),
            Chart(
                "Day files",
                "Files of payloads that are due far ahead: written, read, or failed. Awaited:"
                " something due waits for them, and fires late.",
                "ops",
                (
                    Query("{{outcome}}", "sum by (outcome) (rate(belfry_day_files_total[5m]))"),
                    Query("awaited", "max(belfry_day_files_awaited)"),
                ),
            ),
            Chart(
                "Payloads in day files",
                "Payloads that went into day files (aside), and that came back.",
                "ops",
                (Query("{{way}}", "sum by (way) (rate(belfry_day_file_payloads_total[5m]))"),),
            ),
            Chart(
                "Hosts of webhooks that do not answer",
                "Posts to them wait, and are given up in the end.",
                "short",
                (Query("{{instance}}", "belfry_webhook_hosts_silent"),),
            ),
        ),
    ),
    Group(
        "Verification",
        (
            Chart(
                "Findings of belfry verify",
                "What contradicts the specification, by kind, since it was started.",
                "short",
                (
                    Query(
                        "{{kind}}",
                        "sum by (kind) (belfry_verify_findings_total) > 0",
                        everywhere=True,
                    ),
                ),
            ),
            Chart(
                "Since the last complete pass",
                "It grows while passes fail, or last for long.",
                "s",
                (
                    Query(
                        "",
                        "time() - max(belfry_verify_last_complete_timestamp_seconds)",
                        everywhere=True,
                    ),
                ),
            ),
            Chart(
                "Passes in an hour",
                "A pass fails where brokers do not answer; the next one begins again.",
                "short",
                (
                    Query(
                        "{{outcome}}",
                        "sum by (outcome) (increase(belfry_verify_passes_total[1h]))",
                        everywhere=True,
                    ),
                ),
            ),
            Chart(
                "Changelog that is not verified yet",
                "Offsets up to the ends that it saw last.",
                "short",
                (Query("", "max(belfry_verify_behind_records)", everywhere=True),),
            ),
        ),
    ),
    Group(
        "Mirror",
        (
            Chart(
                "Seconds behind the other cluster",
                "How old the instant is up to which all is carried, and when that was looked at.",
                "s",
                (
                    Query("behind", "max(belfry_mirror_behind_seconds)", everywhere=True),
                    Query(
                        "since the last look",
                        "time() - max("
                        "last_over_time(belfry_mirror_last_look_timestamp_seconds[1d]))",
                        everywhere=True,
                    ),
                ),
            ),
            Chart(
                "Records behind the other cluster",
                "Offsets of all carried topics, as the mirror saw last.",
                "short",
                (Query("", "max(belfry_mirror_behind_records)", everywhere=True),),
            ),
            Chart(
                "Records carried, and failures, a second",
                "What fails is tried again, from the mark on.",
                "short",
                (
                    Query(
                        "carried",
                        "sum(rate(belfry_mirror_carried_records_total[1m]))",
                        everywhere=True,
                    ),
                    Query(
                        "failures", "sum(rate(belfry_mirror_failures_total[1m]))", everywhere=True
                    ),
                ),
            ),
        ),
    ),
)

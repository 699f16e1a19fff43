"""Metrics of the partitions that a worker owns, stands by for, or takes over.

    changelog_lag     what a take-over or a standby has still to read of the state
    ingest_lag        what an owner has still to take in of the requests
    oldest_due        how long the oldest event is overdue, and `waiting`: what for
    transaction       how long one step holds its readers up

A gauge of a partition is shown by its owner and taken back when the partition goes, so a sum over
workers counts each partition once.  `belfry_partition_owned` stays, at 0, since what has moved away
is asked for too.

What holds partitions up stands here as well: the clock, transactions that stay open, topics that
are still to be made, and the local store of each.
"""

from __future__ import annotations

from typing import Final

from belfry.telemetry.family import Family

OF_PARTITIONS: Final = (
    Family(
        "belfry_partition_owned",
        "gauge",
        "1 for a partition that this worker owns, 0 for one that it gave away.",
        ("partition",),
    ),
    Family(
        "belfry_standbys_warm",
        "gauge",
        "Partitions of other workers that this one could take over at once.",
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
        " later_release, day_file.",
        ("partition", "waiting_for"),
    ),
    Family(
        "belfry_stale_schedules",
        "gauge",
        "Recurring schedules that have not fired for five minutes or longer though their rules say"
        " so: their occurrences wait, or were given up. Without those that are paused now, and"
        " without tenants that are blocked now.",
        ("partition",),
    ),
    Family(
        "belfry_stale_longest_seconds",
        "gauge",
        "How long ago the first occurrence was that the longest of these has not fired for; 0 where"
        " none is stale.",
        ("partition",),
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
        "belfry_restores_total",
        "counter",
        "Stores of partitions that were opened, by where their state came from: local, what was on"
        " the disk; peer, a checkpoint of another worker; checkpoint, one of the store; changelog,"
        " from its beginning.",
        ("source",),
    ),
    Family(
        "belfry_key_group_moves_total",
        "counter",
        "Moves of key groups that are over, as the owner of the home counts them: moved, or stayed"
        " where the group lay (the log says why).",
        ("outcome",),
    ),
    Family(
        "belfry_key_groups_away",
        "gauge",
        "Key groups that lie in another partition than the home, which is owned here.",
    ),
    Family(
        "belfry_key_groups_moving",
        "gauge",
        "Key groups on their way from, to or by partitions that are owned here.",
    ),
    Family(
        "belfry_key_group_requests_waiting",
        "gauge",
        "Requests that wait at homes that are owned here while their key groups move.",
    ),
    Family(
        "belfry_checkpoints_total",
        "counter",
        "Checkpoints of partitions by what became of them: made, in the store; kept, for other"
        " workers; failed; or refused when one was to be restored.",
        ("outcome",),
    ),
    Family(
        "belfry_checkpoint_sent_bytes_total",
        "counter",
        "Bytes that were sent to the store of checkpoints.",
    ),
    Family(
        "belfry_checkpoint_served_bytes_total",
        "counter",
        "Bytes of checkpoints that other workers were given.",
    ),
    Family(
        "belfry_checkpoint_fetched_bytes_total",
        "counter",
        "Bytes that were fetched for checkpoints that were restored, by where they came from: peer,"
        " another worker; checkpoint, the store.",
        ("source",),
    ),
    Family(
        "belfry_checkpoint_timestamp_seconds",
        "gauge",
        "When the newest checkpoint of a partition was written, epoch seconds, as far as a worker"
        " knows that makes them.",
        ("partition",),
    ),
    Family(
        "belfry_day_files_total",
        "counter",
        "Day files by what became of them: written; read; write_failed, so that payloads stay in"
        " Kafka; read_failed, so that it is asked again; damaged, not what was put there.",
        ("outcome",),
    ),
    Family(
        "belfry_day_file_payloads_total",
        "counter",
        "Payloads that were put aside into day files, and that came back.",
        ("way",),
    ),
    Family(
        "belfry_day_files_awaited",
        "gauge",
        "Day files that schedules of a partition which are due wait for.",
        ("partition",),
    ),
    Family(
        "belfry_open_transaction_seconds",
        "gauge",
        "For how long a transaction has been holding readers of one of belfry's topics back; a"
        " stranger's, or one that hangs. Absent where there is none.",
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
        "belfry_agent_events_total",
        "counter",
        "Batches that were not taken from a Faust agent (failed), and agents that passed nothing on"
        " and were started again (restarted).",
        ("agent", "event"),
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
        "belfry_clock_skew_seconds",
        "gauge",
        "This machine's clock minus the broker's; positive when it is ahead.",
    ),
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
)

"""The dashboard of who runs a belfry: what it does for its tenants; `workers.py` has the rest."""

from __future__ import annotations

from typing import Final

from dashboards.parts import Chart, Figure, Group, Query, choice, dashboard, put, quantile
from dashboards.workers import WORKERS

DONE: Final = (
    Group(
        "At a glance",
        (
            Figure(
                "Pending",
                "Schedules that wait for their next due instant.",
                "short",
                Query("", "sum(belfry_pending_schedules)"),
            ),
            Figure(
                "Fired a second",
                "Events fired in committed transactions.",
                "ops",
                Query("", "sum(rate(belfry_fired_total[1m]))"),
            ),
            Figure(
                "Oldest overdue",
                "How long the oldest due event has been waiting; 0 when none is overdue.",
                "s",
                Query("", "max(belfry_oldest_due_seconds)"),
                orange=5,
                red=60,
            ),
            Figure(
                "Partitions owned",
                "Each partition has exactly one owner; less than the partitions of the"
                " topic means that some have none.",
                "short",
                Query("", "sum(belfry_partition_owned)"),
            ),
            Figure(
                "Firing paused",
                "Workers whose clock cannot be trusted; they fire nothing until it can.",
                "short",
                Query("", "sum(belfry_firing_paused)"),
                red=1,
            ),
            Figure(
                "Workers by version",
                "Workers that answer, by the version they run.",
                "short",
                Query("{{version}}", "count by (version) (belfry_build_info)"),
            ),
        ),
    ),
    Group(
        "Firing",
        (
            Chart(
                "Lateness",
                "From the due instant of an event to the instant it was fired. It is never"
                " below 0: nothing fires early.",
                "s",
                (
                    Query("p50", quantile(0.5, "rate(belfry_fire_lateness_seconds_bucket[1m])")),
                    Query("p99", quantile(0.99, "rate(belfry_fire_lateness_seconds_bucket[1m])")),
                    Query(
                        "p99.9", quantile(0.999, "rate(belfry_fire_lateness_seconds_bucket[1m])")
                    ),
                    Query(
                        "ends of minutes, p99",
                        quantile(0.99, "rate(belfry_bucket_drained_lateness_seconds_bucket[1m])"),
                    ),
                ),
            ),
            Chart(
                "Overdue by partition",
                "How long the oldest due event of each partition has been waiting.",
                "s",
                (Query("{{partition}}", "max by (partition) (belfry_oldest_due_seconds)"),),
            ),
            Chart(
                "Stale schedules",
                "What recurs and has not fired though its rule says so, and for how long the"
                " longest of them; belfry doctor names it.",
                "short",
                (
                    Query(
                        "schedules of {{partition}}", "sum by (partition) (belfry_stale_schedules)"
                    ),
                    Query(
                        "hours, of {{partition}}",
                        "max by (partition) (belfry_stale_longest_seconds) / 3600",
                    ),
                ),
            ),
            Chart(
                "Pending by partition",
                "Schedules that wait; very uneven bars mean a hot tenant that should be spread.",
                "short",
                (Query("{{partition}}", "sum by (partition) (belfry_pending_schedules)"),),
            ),
            Chart(
                "Missed and completed",
                "Occurrences that their misfire policy gave up, and recurring schedules"
                " that fired their last, in ten minutes.",
                "short",
                (
                    Query("missed", "sum(increase(belfry_missed_total[10m]))"),
                    Query("completed", "sum(increase(belfry_completed_total[10m]))"),
                    Query("not acknowledged", "sum(increase(belfry_unacknowledged_total[10m]))"),
                    Query(
                        "moved by new time zone data", "sum(increase(belfry_rederived_total[10m]))"
                    ),
                    Query(
                        "held back, not understood", "sum(increase(belfry_unreadable_total[10m]))"
                    ),
                    Query(
                        "bulk {{action}}",
                        "sum by (action) (increase(belfry_bulk_schedules_total[10m]))",
                    ),
                ),
            ),
        ),
    ),
    Group(
        "Requests",
        (
            Chart(
                "Requests a second by outcome",
                "Verdicts on requests; each request gets exactly one.",
                "ops",
                (Query("{{outcome}}", "sum by (outcome) (rate(belfry_requests_total[1m]))"),),
            ),
            Chart(
                "Refused requests a second by code",
                "Why requests were refused; docs/rejections.md explains each code.",
                "ops",
                (Query("{{code}}", "sum by (code) (rate(belfry_rejected_total[1m]))"),),
            ),
            Chart(
                "Requests without a verdict",
                "Requests in the log that have no verdict yet, by partition.",
                "short",
                (Query("{{partition}}", "sum by (partition) (belfry_ingest_lag_records)"),),
            ),
            Chart(
                "HTTP requests a second",
                "By status; (other) routes are what nobody answers for.",
                "reqps",
                (Query("{{status}}", "sum by (status) (rate(belfry_http_requests_total[5m]))"),),
            ),
            Chart(
                "Events of the audit log a second",
                "written, or lost; each that is lost is a change or a refusal without an entry.",
                "ops",
                (Query("{{outcome}}", "sum by (outcome) (rate(belfry_audit_events_total[5m]))"),),
            ),
            Chart(
                "API keys",
                "Keys of the list: valid, expiring within 14 days, or expired.",
                "short",
                (Query("{{state}}", "max by (state) (belfry_api_keys)"),),
            ),
            Chart(
                "HTTP p99 by route",
                "Time to the end of an answer; a write waits for its verdict.",
                "s",
                (
                    Query(
                        "{{route}}",
                        quantile(0.99, "rate(belfry_http_request_seconds_bucket[5m])", by="route"),
                    ),
                ),
            ),
        ),
    ),
    Group(
        "Tenants",
        (
            Chart(
                "Pending, by tenant",
                "Schedules of the foremost tenants; (other) is the rest.",
                "short",
                (Query("{{tenant}}", "sum by (tenant) (belfry_tenant_pending_schedules)"),),
            ),
            Chart(
                "Fires a second, by tenant",
                "Events of the foremost tenants that fired; (other) is the rest.",
                "short",
                (Query("{{tenant}}", "sum by (tenant) (rate(belfry_tenant_fired_total[5m]))"),),
            ),
            Chart(
                "Refusals a second, by tenant",
                "Refused requests of the foremost tenants; (other) is the rest.",
                "short",
                (Query("{{tenant}}", "sum by (tenant) (rate(belfry_tenant_rejected_total[5m]))"),),
            ),
            Chart(
                "Mean lateness, by tenant",
                "From due to the step that fires, of what fired within five minutes.",
                "s",
                (
                    Query(
                        "{{tenant}}",
                        "sum by (tenant) (rate(belfry_tenant_lateness_seconds_total[5m])) / sum"
                        " by (tenant) (rate(belfry_tenant_fired_total[5m]))",
                    ),
                ),
            ),
            Chart(
                "Tenants whose events wait",
                "How many, by what for: output_topic, paused and not_served block all that"
                " a tenant has due.",
                "short",
                (Query("{{cause}}", "sum by (cause) (belfry_tenants_waiting)"),),
            ),
            Chart(
                "How long the oldest of a tenant waits",
                "The oldest due event of a tenant, by what it waits for.",
                "s",
                (
                    Query(
                        "{{tenant}}: {{cause}}",
                        "max by (tenant, cause) (belfry_tenant_waiting_seconds)",
                    ),
                ),
            ),
            Chart(
                "Longest wait of a tenant, by cause",
                "Of the oldest due event of any tenant, also of those that are not told apart.",
                "s",
                (Query("{{cause}}", "max by (cause) (belfry_tenants_waiting_longest_seconds)"),),
            ),
            Chart(
                "Usage of tenants told, in two hours",
                "Records of usage that partitions wrote: one for each tenant and period in"
                " which it used something. 0 where nothing is metered.",
                "short",
                (Query("records", "sum(increase(belfry_metered_periods_total[2h]))"),),
            ),
        ),
    ),
)


def operators() -> str:
    """The JSON of the dashboard."""
    board = dashboard("belfry", "belfry", "A cluster of belfry, its partitions and its workers.")
    board.with_variable(choice("instance", "Worker", "label_values(belfry_build_info, instance)"))
    return put(board, (*DONE, *WORKERS), 'instance=~"$instance"')

"""The dashboard of one tenant, or of those that are chosen: what it has, gets, and waits for."""

from __future__ import annotations

from typing import Final

from dashboards.parts import Chart, Figure, Group, Query, choice, dashboard, put

GROUPS: Final = (
    Group(
        "At a glance",
        (
            Figure(
                "Pending",
                "Schedules that wait for their next due instant.",
                "short",
                Query("", "sum(belfry_tenant_pending_schedules)"),
            ),
            Figure(
                "Fired in an hour",
                "Events that came out within the last hour.",
                "short",
                Query("", "sum(increase(belfry_tenant_fired_total[1h]))"),
            ),
            Figure(
                "Refused in an hour",
                "Requests that were refused within the last hour; docs/rejections.md explains each"
                " code.",
                "short",
                Query("", "sum(increase(belfry_tenant_rejected_total[1h]))"),
                orange=1,
            ),
            Figure(
                "Mean lateness",
                "From due to the step that fires, of what fired within an hour.",
                "s",
                Query(
                    "",
                    "sum(rate(belfry_tenant_lateness_seconds_total[1h]))"
                    " / sum(rate(belfry_tenant_fired_total[1h]))",
                ),
                orange=1,
                red=60,
            ),
            Figure(
                "Longest wait",
                "How long the oldest due event has been waiting; empty where nothing waits.",
                "s",
                Query("", "max(belfry_tenant_waiting_seconds)"),
                orange=5,
                red=60,
            ),
        ),
    ),
    Group(
        "What comes and goes",
        (
            Chart(
                "Pending",
                "Schedules that wait; (other) is all tenants that are not told apart.",
                "short",
                (Query("{{tenant}}", "sum by (tenant) (belfry_tenant_pending_schedules)"),),
            ),
            Chart(
                "Fires a second",
                "Events that came out.",
                "ops",
                (Query("{{tenant}}", "sum by (tenant) (rate(belfry_tenant_fired_total[5m]))"),),
            ),
            Chart(
                "Refusals a second",
                "Requests that were refused; `belfry tenant get` and docs/rejections.md say why.",
                "ops",
                (Query("{{tenant}}", "sum by (tenant) (rate(belfry_tenant_rejected_total[5m]))"),),
            ),
            Chart(
                "Mean lateness",
                "From due to the step that fires, of what fired within five minutes.",
                "s",
                (
                    Query(
                        "{{tenant}}",
                        "sum by (tenant) (rate(belfry_tenant_lateness_seconds_total[5m]))"
                        " / sum by (tenant) (rate(belfry_tenant_fired_total[5m]))",
                    ),
                ),
            ),
        ),
    ),
    Group(
        "Usage",
        (
            Chart(
                "Accepted a second",
                "Requests that brought something to keep, as belfry tenant usage counts them.",
                "ops",
                (Query("{{tenant}}", "sum by (tenant) (rate(belfry_tenant_accepted_total[5m]))"),),
            ),
            Chart(
                "Deliveries a second",
                "Those that succeeded; belfry deliveries list shows what was given up.",
                "ops",
                (Query("{{tenant}}", "sum by (tenant) (rate(belfry_tenant_delivered_total[5m]))"),),
            ),
        ),
    ),
    Group(
        "What waits",
        (
            Chart(
                "Waits, and what for",
                "How long the oldest due event has been waiting, by the cause: output_topic, paused"
                " and not_served block all that a tenant has due.",
                "s",
                (
                    Query(
                        "{{tenant}}: {{cause}}",
                        "max by (tenant, cause) (belfry_tenant_waiting_seconds)",
                    ),
                ),
            ),
        ),
    ),
)


def tenants() -> str:
    """The JSON of the dashboard."""
    title = "belfry tenants"
    board = dashboard(title, "belfry-tenants", "What single tenants have, get and wait for.")
    board.with_variable(
        choice("tenant", "Tenant", "label_values(belfry_tenant_pending_schedules, tenant)")
    )
    return put(board, GROUPS, 'tenant=~"$tenant"')

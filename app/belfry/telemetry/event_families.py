"""Metrics of requests and events: what was asked, what fired, how late, and for whom.

    asked                    fired, or given up              told on
    requests, rejected  ──►  fired, lateness, missed,   ──►  deliveries
                             completed, held back

Counters rise once for each committed transaction, so a step that is rolled back counts nothing.
They are sums over all partitions of a worker: a sum over workers is right however partitions are
shared.

*Lateness* begins at the due instant, after jitter, and ends with the commit with which readers see
the event.  `belfry_slo_…` measure the same from outside, by events that belfry schedules to itself
(`canary/`): they count what was never asked as well, so an outage shows in them.

`belfry_tenant_…` are the same by tenant, of the foremost ones alone (`tenant_metrics.py`).  What
they wait for has a name of its own each: the topic that refuses, the pause of a policy, a rate, a
priority, a queue, an ack lock.  Of the others `belfry_tenants_waiting` tells how many wait for it.
"""

from __future__ import annotations

from typing import Final

from belfry.telemetry.family import Family

OF_EVENTS: Final = (
    Family("belfry_requests_total", "counter", "Verdicts on requests, by outcome.", ("outcome",)),
    Family("belfry_rejected_total", "counter", "Refused requests, by error code.", ("code",)),
    Family("belfry_fired_total", "counter", "Events fired in committed transactions."),
    Family(
        "belfry_fire_lateness_seconds",
        "histogram",
        "Time from the due instant of an event to the commit with which readers see it.",
    ),
    Family("belfry_missed_total", "counter", "Occurrences given up by their misfire policy."),
    Family("belfry_unacknowledged_total", "counter", "Fires not acknowledged in time."),
    Family("belfry_rederived_total", "counter", "Occurrences that new time zone data has moved."),
    Family(
        "belfry_unreadable_total",
        "counter",
        "Due schedules held back: of a later release or newer zone data, or their fire fails.",
    ),
    Family("belfry_completed_total", "counter", "Recurring schedules that fired their last."),
    Family(
        "belfry_bulk_schedules_total",
        "counter",
        "Schedules that bulk jobs have touched, by the jobs' action and by outcome.",
        ("action", "outcome"),
    ),
    Family(
        "belfry_bucket_drained_lateness_seconds",
        "histogram",
        "Minute buckets that have ended, by how long after its last due instant each was empty.",
    ),
    Family(
        "belfry_metered_periods_total",
        "counter",
        "Records of usage that partitions wrote: one for each tenant and period in which it used"
        " something.",
    ),
    Family(
        "belfry_deliveries_total",
        "counter",
        "Attempts at HTTP deliveries, by what followed: DELIVERED, RETRIED or FAILED; and SETTLED,"
        " those given up because a worker refused the next attempt.",
        ("outcome",),
    ),
    Family(
        "belfry_deliveries_removed_total",
        "counter",
        "Offsets that the retention of a topic removed before a dispatcher had come to an end with"
        " them: at most so many records, since each transaction takes one offset as well. Of"
        " deliveries, which nobody makes any more; of rejected, where refused retries may have been"
        " among them.",
        ("topic",),
    ),
    Family(
        "belfry_delivery_seconds",
        "histogram",
        "Time from a post to its answer, or from a record for a topic to its acknowledgement, by"
        " kind of target.",
        ("kind",),
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
        " queue, ack_lock, catch_up, later_release, day_file.",
        ("cause",),
    ),
    Family(
        "belfry_tenants_waiting_longest_seconds",
        "gauge",
        "How long the longest of these has been waiting.",
        ("cause",),
    ),
)

"""Webhooks: fired events posted to HTTP targets, at least once, with one constant id.

    belfry.deliveries ─► work ─► post ─► answer ─► step ─► ONE TRANSACTION
    (read_committed)      │               │                  outcome      belfry.lifecycle
                          │               │                  retry        belfry.schedules
                          key of its order        2xx, 4xx, 5xx,     given up     belfry.undelivered
                          group           nothing            position     the group's offsets

A retry is a schedule, so no delivery waits in this process and a crash loses none.
"""

"""The canary: belfry schedules events to itself and tells how many came out, and how late.

`slots` says which events there have to be and keeps what became of them. `asking` makes the
requests, `canary` runs in each worker that measures, `reading` reads what all of them have written,
and `objectives` counts. `slots`, `asking` and `objectives` are pure.
"""

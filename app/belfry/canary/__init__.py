"""The canary: belfry schedules events to itself and tells how many came out, and how late.

`slots` says which events there have to be and keeps their results. `asking` makes the requests,
`canary` runs in each worker that measures, `rows` writes and reads the rows of all of them, and
`objectives` counts. `slots`, `asking` and `objectives` are pure.
"""

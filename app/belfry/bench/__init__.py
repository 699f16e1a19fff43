"""Benchmarks that anybody can repeat: the shipped worker, any broker, one JSON line each.

    ingest     requests in the log to schedules in the state
    fire       from one due instant to the last committed record, markers included
    lateness   due instant to a live `read_committed` consumer, while as many requests come in
    recovery   a worker without local state: records of the changelog replayed a second
    raw        a plain transactional consume-produce loop over the same bytes: the yardstick

Figures of one machine differ from day to day; only the ratio to `raw` of the same minutes counts.
"""

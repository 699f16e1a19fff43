"""The audit log: which caller asked for which change, or for something it has no right to.

    HTTP ─► `trail` (bounded, never waits) ─► `writer` (a thread, a producer) ─► belfry.audit
               ▲
           `refusals`: the first few in full, the rest as a sum per minute

    belfry.tenants ─► `policy_log` (a consumer group of the workers) ─────────► belfry.audit

Nobody's request waits for the log, and what the log cannot take is counted and told.
"""

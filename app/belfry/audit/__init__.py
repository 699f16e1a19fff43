"""The audit log: which caller asked for which change, or was refused for want of a right.

    HTTP ─► `trail` (bounded, never waits) ─► `writer` (a thread, a producer) ─► belfry.audit
               ▲
           `refusals`: the first few in full, the rest as a sum per minute

    belfry.tenants ─► `policy_log` (a consumer group of the workers) ─────────► belfry.audit

No request waits for the log, and an event that the log cannot take is counted and logged.
"""

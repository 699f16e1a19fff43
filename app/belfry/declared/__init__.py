"""What files of YAML declare, and how it differs from what is there.

    files ──yaml_lines──► entries with their lines ──policy_entries, schedule_entries──► Declaration
    Declaration, what stands, the set's record ──difference──► what to create, update, remove
    that ──applying──► writes, in an order that a kill does not harm

All but `applying` is pure. `applying` decides the order and writes by an object that it is given
(`Ways`), so tests run it without Kafka; `belfry.cli.applied` has the real one.
"""

"""Declarations in files of YAML, and how they differ from the existing objects.

    files ──yaml_lines──► entries with their lines ──policy_entries, schedule_entries──► Declaration
    Declaration, existing objects, the set's record ──difference──► creates, updates, removals
    creates, updates, removals ──applying──► writes, in an order that a kill does not harm

All but `applying` is pure. `applying` decides the order and writes by an object that it is given
(`Ways`), so tests run it without Kafka; `belfry.cli.applied` has the real one.
"""

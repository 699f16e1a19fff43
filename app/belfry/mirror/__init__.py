"""A mirror: one belfry carried to a second Kafka cluster, which may take over from the first.

Its page says what is carried and how; docs/mirror.md has the promises and the limits.
"""

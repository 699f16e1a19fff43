"""A worker's access to Kafka: one partition's log, transactions, topics and their rules, secure
connections.

Nothing in here knows schedules, except for the effects that one transaction commits.
"""

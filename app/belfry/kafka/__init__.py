"""Kafka as a worker sees it: one partition's log, transactions, topics and their rules, secure
connections.

Nothing in here knows what a schedule is, but for the effects that one transaction makes true.
"""

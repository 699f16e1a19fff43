"""What became of requests and occurrences: lifecycle records kept for as long as a tenant wants.

Beside the firing and never in its way: a reader of its own, a store of its own, and range deletions
where a tenant's time is over.  What it holds can be thrown away; it is read again from the topic,
as far back as that reaches.
"""

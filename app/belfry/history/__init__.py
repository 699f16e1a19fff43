"""The outcomes of requests and occurrences: lifecycle records kept for as long as a tenant wants.

It works beside the firing and never delays it: it has a reader and a store of its own, and range
deletions remove records whose time is over.  Its store can be thrown away; it is read again from
the topic, as far back as that reaches.
"""

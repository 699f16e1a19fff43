"""The schema registry as belfry uses it: writers' schemas in, its own schemas out.

An adapter over Confluent's synchronous client, for worker threads and commands; it never runs on
an event loop.  Subjects follow TopicNameStrategy.  Where no registry is configured nothing of this
is used: records then carry single-object heads.
"""

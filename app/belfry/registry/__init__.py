"""The schema registry as belfry uses it: writers' schemas in, its own schemas out.

It is an adapter over Confluent's synchronous client, for worker threads and commands; it never runs
on an event loop. Subjects follow a strategy of Confluent's, TopicNameStrategy by default. If no
registry is configured, this room is not used: records then carry single-object heads.
"""

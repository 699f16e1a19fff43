"""The command line: `belfry`.

    belfry dev                        Kafka, a registry and a worker on this machine
    belfry schedule create demo hello --in 5s --payload 'hello, belfry'
    belfry events tail demo

Writes go through Kafka and wait for the verdict.  Every command takes the options of
`belfry.cli.session`; what goes wrong is told in one sentence on stderr, and by the exit code:
0 ok, 1 error, 2 usage, 3 not found, 4 conflict.  Commands import what they need when they run, so
that help comes at once.
"""

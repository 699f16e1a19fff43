"""The command line: `belfry`.

    belfry dev                        Kafka, a registry and a worker on this machine
    belfry schedule create demo hello --in 10s --payload 'hello, belfry'
    belfry events tail demo

A command reaches belfry in one of three ways, and its module says in which:

    create, cancel, tenant set …      Kafka: a request is written, and its verdict is awaited
    schedule list, get, calendar …    HTTP: a worker is asked, at --http-url
    verify, backup, doctor …          Kafka: topics are read, and no worker has to run

Every command takes the options of `belfry.cli.session`. An error is told in one sentence on stderr,
and by the exit code: 0 ok, 1 error, 2 usage, 3 not found, 4 conflict. Commands import what they
need when they run, so that help comes at once.

All of it runs in the main thread of a process of its own, which ends with the command. No other
part of belfry imports this room.
"""

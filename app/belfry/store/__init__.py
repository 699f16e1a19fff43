"""Schedules at rest: key layout, records, and the ordered map that holds them.

The format is specified in `README.md` of this room, with a worked example.

    layout/       bytes: keys and records, the only modules that know an offset
    schedules     the committed rows with a step's overlay above them; `committed` reads the former
    replay        a changelog folded into a store; `signatures` says whose records count
    *_lookup      reads for HTTP and the command line, from any thread
"""

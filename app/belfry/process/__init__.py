"""One worker process: what it finds at its start, what it shares, its checks of itself, its orderly
end.

    half_settings ─► data_folder ─► cluster_start ─► sharing ─► worker ─► hands on, leaves
                                                                  ├── self_check
                                                                  └── front, view: for HTTP

The order is put together in `belfry.assembly`. Whatever fails before `worker` ends the process with
exit code 1 and a sentence that says what to do; a broker that does not answer is waited for.
"""

"""One worker process: its checks at the start, its shared objects, its checks of itself, its
orderly end.

    half_settings ─► data_folder ─► cluster_start ─► sharing ─► worker ─► hands on, leaves
                                                                  ├── self_check
                                                                  └── front, view: for HTTP

`belfry.assembly` calls them in this order. A failure before `worker` ends the process with exit
code 1 and a sentence that says what to do; the process waits for a broker that does not answer.
"""

"""Whether a cluster's topics agree with one another: records in, findings out.

Pure, and apart from the engine and the store: a checker that shared their rules would share their
faults.  `belfry verify` reads the topics and hands the records in (`cli/verify_cluster.py`).
"""

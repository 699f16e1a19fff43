"""One worker process: membership by Faust, batches and transactions by confluent-kafka.

The shell around the engine is thin: it reads batches, keeps the clock, makes effects true in one
transaction, and says what became of them.
"""

"""Transactions written by requests of belfry's own: a step is one Produce for each broker.

    producer      the interface that a partition's loop uses; makes a step's records batches
    batches       records to record batches, and batches to requests
    writer        the state machine of one transactional id: begin, write, end
    appending     Produce to leaders, again and again until all are acknowledged
    asking        deadlines, pauses, throttling      errors    the meaning of errors
    brokers       connections, by aiokafka's client  loop      the event loop of all writers

Records become batches in the thread of their partition; requests leave in the writers' event loop.
"""

"""Output topics: made before a tenant's first event, and checked before a step; a tenant whose
topic refuses records is held.

    readiness      the check before a step, and the threads that look at topics and make them
    output_state   which tenants are ready and which topics open, behind one lock
    topic_queue    which topic is made next, and how fast
    envelopes      the bytes before an envelope, by the registry
"""

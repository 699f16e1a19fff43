"""Output topics: made before a tenant's first event, looked at before a step, and held where they
refuse.

    readiness      what a step asks, and the threads that look at topics and make them
    output_state   which tenants are ready and which topics open, behind one lock
    topic_queue    which topic is made next, and how fast
    envelopes      the bytes before an envelope, by the registry
"""

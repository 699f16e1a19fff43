"""Output topics: made before a tenant's first event, looked at before a step, and held where they
refuse.
"""

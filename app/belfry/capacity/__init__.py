"""The needs of a cluster for its load: a model, and constants that were measured.

`belfry plan` uses it.  It is pure: a demand and constants go in, estimates come out.
"""

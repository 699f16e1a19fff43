"""What a cluster needs for its load: a model, and constants that were measured.

`belfry plan` asks it.  Pure: a demand and constants go in, estimates come out.
"""

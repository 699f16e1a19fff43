"""What a cluster needs for what is asked of it: a model, and constants that were measured.

`belfry plan` asks it.  Pure: a demand and constants go in, estimates come out.
"""

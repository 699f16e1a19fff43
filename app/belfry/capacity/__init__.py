"""What a cluster needs for what is asked of it: a model, and constants that were measured."""

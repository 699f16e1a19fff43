"""Transactions written by requests of belfry's own: a step is one Produce for each broker."""

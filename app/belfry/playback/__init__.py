"""Playback: a partition's log of requests played through the pure engine once more.

The instants are those of the changelog, so the same bytes have to come out; or those of the
requests alone, on a virtual clock, where the question is the effect of other policies.
"""

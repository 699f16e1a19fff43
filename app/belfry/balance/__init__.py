"""Owners and standbys of partitions: the group's leader computes them from the members' statements.

It is pure: the same members give the same shares, on whichever worker leads the group.

    members ─► owners (even, hashed) ─► shares with standbys ─► a part for each (`assignment`)
"""

"""Who owns which partition and who stands by: the group's leader computes it from what all say.

Pure: the same members in give the same shares out, on whichever worker leads the group.

    members ─► owners (even, hashed) ─► shares with standbys ─► a part for each (`assignment`)
"""

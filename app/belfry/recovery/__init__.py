"""A partition's state as it comes back: from the local store, from the changelog, or after a loss.

The order is what makes it safe: catch up, fence, read to the end, check (`takeover.py`).  The ids
that the state was written for are compared with the present ones (`evidence.py`, `identities.py`).
"""

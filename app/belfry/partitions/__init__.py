"""The partitions of a worker: taken over, stood by for, read, fired from, and handed on.

Each owned partition is a loop (`owner.py`).  `supervisor.py` starts and ends owners and standbys as
the group assigns partitions; `opener.py` opens the parts of an owner or a standby.
"""

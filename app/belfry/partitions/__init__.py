"""The partitions of a worker: taken over, stood by for, read, fired from, and handed on.

Each owned partition is a loop (`owner.py`).  `supervisor.py` brings what runs in line with what the
group says; `opener.py` opens what an owner or a standby needs.
"""

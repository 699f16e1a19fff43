"""One object per partition that joins schedules, wire, store and firing.

Batches and instants go in, effects come out; the shell makes them true in one transaction and tells
its end.  `README.md` of this room draws the ownership states.
"""

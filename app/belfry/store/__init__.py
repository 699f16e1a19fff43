"""Schedules at rest: key layout, records, and the ordered map that holds them.

The format is specified in `README.md` of this room, with a worked example.
"""

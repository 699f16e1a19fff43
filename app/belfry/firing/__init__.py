"""The due rows: the scan from the watermark, and the guard that watches the clock.

It is pure: the shell reads clocks and passes numbers in; `engine/firing.py` fires the rows that are
found.
"""

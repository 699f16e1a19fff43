"""What is due now: the scan from the watermark, and the guard that watches the clock.

Pure: clocks are read by the shell and come in as numbers; `engine/firing.py` fires what is found.
"""

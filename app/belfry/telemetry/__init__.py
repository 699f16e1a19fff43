"""What a worker says about itself: log lines and metrics.

Neither holds state that the program relies on, and neither is reached from the pure rooms: the
shell turns their verdicts into counts and lines.
"""

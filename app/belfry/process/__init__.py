"""One worker process: what it finds at its start, what it shares, its checks of itself, its
orderly end.
"""

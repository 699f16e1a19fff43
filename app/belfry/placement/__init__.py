"""Where tenants lie: the key group of each, and which groups would have to move for an even load.

`belfry rebalance plan` uses it.  It is pure: loads go in, moves come out.
"""

"""The port: connections, their limits, heads and bodies, before any route is looked at."""

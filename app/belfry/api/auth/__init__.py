"""Callers: keys, tokens, roles, and the rate of their calls."""

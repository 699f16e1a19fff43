"""Tenants' policies as a worker follows and writes them, and the secrets that they name.

belfry.tenants ─► follower (bytes by tenant) ─► effective policy ─► outputs ─► directory
                     ▲ written by way of the topic
HTTP ─► policy_client┘
"""

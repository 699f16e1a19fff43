"""How a tenant is treated: its policy, the effects of that, and the directory of all tenants as a
snapshot.

Pure: a policy is a value, and each step of a partition goes by one snapshot of all policies.
"""

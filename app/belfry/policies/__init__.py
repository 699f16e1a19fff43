"""Tenants' policies as a worker follows and writes them, and the secrets that they name."""

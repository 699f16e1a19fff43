"""Dashboards for Grafana, made by its SDK, and the alerts; no user installs this package."""

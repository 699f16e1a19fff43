"""The console's views as its benchmark opens them, of the tenants that `http_load.py` fills.

A test sees to it that none is missing.
"""

from __future__ import annotations

from typing import Final

from http_load import stem

# A bulk job that matches nothing, so that its page has something to show.
JOBS: Final = "/v1/tenants/tenant-1/jobs"
JOB: Final = {"action": "PAUSE", "prefix": "none-such-", "job": "looked-at"}
VIEWS: Final = {
    "overview": "/",
    "schedules": "/console/schedules?tenant=tenant-1",
    "schedules by id": f"/console/schedules?tenant=tenant-1&prefix={stem(1)[:-2]}",
    "schedule": f"/console/schedule?tenant=tenant-1&id={stem(1)}",
    "timeline by minute": "/console/timeline?tenant=tenant-1",
    "timeline by day": "/console/timeline?tenant=tenant-1&by=day",
    "timeline of all": "/console/timeline",
    "timeline by hour": "/console/timeline?tenant=tenant-1&by=hour",
    "versions": f"/console/versions?tenant=tenant-1&id={stem(1)}",
    "create": "/console/create?tenant=tenant-1",
    "edit": f"/console/edit?tenant=tenant-1&id={stem(1)}",
    "bulk": f"/console/bulk?tenant=tenant-1&action=PAUSE&prefix={stem(1)[:-2]}",
    "job": "/console/job?tenant=tenant-1&job=looked-at",
    "tenants": "/console/tenants?tenant=tenant-1",
    "policy": "/console/policy?tenant=tenant-1",
    "calendars": "/console/calendars?tenant=tenant-1",
    "deliveries": "/console/deliveries?tenant=tenant-1",
    "hosts": "/console/deliveries",
    "rejections": "/console/rejections",
    "redrive": "/console/redrive?tenant=tenant-1",
    "cluster": "/console/cluster",
}

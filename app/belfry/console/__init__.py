"""The console: pages for people, rendered here and served by `belfry.api`.

It is a room of its own on top of the API's functions.  Each view asks the API's own routes, inside
the process, with the key of the person who looks (`asking.py`), so roles, tenants, rates and the
audit log are those of the API and there is no second way to the data.

    asking.py      questions to the API, on behalf of the request for the page
    routes.py      addresses, and how a view becomes an answer: templates, refusals, no key
    page.py        the result of a view, and the headers of every page
    posted.py      the fields of forms, and the page they come from
    words.py       values in words: instants, durations, lateness, payloads
    overview.py, schedules.py, one_schedule.py, versions.py, editing.py, bulk.py,
    timeline.py, creating.py, places.py, policies.py, kept.py, hosts.py      the views

**Why the key stays in the tab.**  The key lies in the browser's session storage and goes with each
request as the header `Authorization`, put there by `assets/page.js`.  A cookie would go along with
requests that a strange page causes; a header does not, so no request can be forged, no worker keeps
sessions, and any worker answers the next request.  An address that is opened anew comes without the
header: it is answered with an empty page that fetches itself with it, so links work.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

ASSETS: Final = Path(__file__).parent / "assets"
TEMPLATES: Final = Path(__file__).parent / "templates"

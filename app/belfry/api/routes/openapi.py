"""The OpenAPI document of this release, as `docs/openapi.json` keeps it; a test compares the two.

python -m belfry.api.routes.openapi > docs/openapi.json
"""

from __future__ import annotations

import sys

import orjson
from prometheus_client import CollectorRegistry

from belfry.api.routes.app import create_app
from belfry.api.workers.view import Nobody
from belfry.telemetry.metrics import Metrics


def document() -> bytes:
    """The document of this release: JSON with sorted keys, two blanks an indentation."""
    app = create_app(Nobody(), Metrics(CollectorRegistry()))
    options = orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS | orjson.OPT_APPEND_NEWLINE
    return orjson.dumps(app.openapi(), option=options)


if __name__ == "__main__":
    sys.stdout.buffer.write(document())

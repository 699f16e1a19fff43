"""How soon a client uses a broker again that was away.

librdkafka's waits grow to 10 s by default, so a restart of a broker is felt for as long.  It
refuses a longest wait below the first one, which a user may have given.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

_FIRST: Final = "reconnect.backoff.ms"
_LONGEST: Final = "reconnect.backoff.max.ms"
_LONGEST_MS: Final = 500


def reconnecting(given: Mapping[str, Any]) -> dict[str, Any]:
    """The longest wait in milliseconds, as a property; none beside a first one that is no number.

    Workers have the same (`settings/properties.py`), which the client is installed without.
    """
    try:
        return {_LONGEST: max(_LONGEST_MS, int(given.get(_FIRST, 0)))}
    except (TypeError, ValueError):
        return {}

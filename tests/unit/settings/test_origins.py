"""Settings as they are shown: no user and no password of an address, however it is written."""

from __future__ import annotations

from typing import Final

import pytest

from belfry.settings import Settings
from belfry.settings.origins import origins
from belfry.settings.sources import NOT_SHOWN

BLOT: Final = NOT_SHOWN
ADDRESSES: Final = [
    #  given                                  shown
    ("https://h:1/x?y=z", "https://h:1/x?y=z"),
    ("https://u:hunter2@h/x", f"https://{BLOT}@h/x"),
    ("https://hunter2@h", f"https://{BLOT}@h"),
    ("https://u:p@hunter2@h/x", f"https://{BLOT}@h/x"),
    # Nobody can say where such a password ends.
    ("https://u:hunter2/p@h", f"https://{BLOT}"),
    ("https://u:p?hunter2@h", f"https://{BLOT}"),
    ("https://u:p#hunter2@h", f"https://{BLOT}"),
    ("https://u:p@hunter2/p@h/x", f"https://{BLOT}"),
    ("https://u:p//hunter2@h", f"https://{BLOT}"),
    # Several, of which each has its own.
    ("http://a,http://u:p@hunter2@b,http://c", f"http://a,http://{BLOT}@b,http://c"),
    ("http://u:p,hunter2@a,https://b/x", f"http://{BLOT}@a,https://b/x"),
    ("http://u:hunter2/p@a http://b", f"http://{BLOT} http://b"),
]


def shown(settings: Settings, name: str) -> object:
    return next(each.value for each in origins(settings, {}) if each.name == name)


@pytest.mark.parametrize(("given", "expected"), ADDRESSES, ids=[given for given, _ in ADDRESSES])
def test_credentials_of_an_address_are_not_shown(given: str, expected: str) -> None:
    settings = Settings.model_construct(otlp_url=given, http_allowed_origins=[given, "https://x"])
    assert shown(settings, "otlp_url") == expected
    assert shown(settings, "http_allowed_origins") == [expected, "https://x"]
    assert "hunter2" not in repr(origins(settings, {}))

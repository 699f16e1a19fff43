"""What workers of a release have sent on, and said of themselves, counts with those of later ones.

Frozen as release 0.1.0 wrote it: workers of two releases share a log for as long as one is rolled
out, and each believes what the other one signs.
"""

from __future__ import annotations

from typing import Final

import pytest

from belfry.engine.reports import Reports, SourcePartition
from belfry.schedules.identity import Homes
from belfry.settings import Settings
from belfry.settings.agreement import decode, differences, statement, unsigned_before
from belfry.store.layout.records import text_of
from belfry.store.layout.statements import unsigned_until
from belfry.store.ordered_map import MemoryMap
from belfry.store.schedules import ScheduleStore
from belfry.wire.origins import vouched
from belfry.wire.record import Headers
from belfry.wire.worker_keys import Purpose, keys_of

GIVEN: Final = "the secret of the last release"
KEYS: Final = keys_of([GIVEN.encode()], Purpose.ORIGIN)
KEY, VALUE = b"demo/a", b'{"any":"bytes"}'
PROOF: Final = (
    b"1137f4ab2b56aa8bfd9d973211a4db20"  # pragma: allowlist secret
    b"5581699a03f3c249daad33fdcdbee46c"  # pragma: allowlist secret
)
SAID: Final[Headers] = [
    ("mine", b"1"),
    ("null", None),
    ("belfry-origin-topic", b"belfry.schedules"),
    ("belfry-origin-partition", b"2"),
    ("belfry-origin-offset", b"17"),
    ("belfry-origin-timestamp", b"1798000000000"),
    ("belfry-origin-asked", b"1"),
    ("belfry-origin-by", b"2.40"),
]
SENT_ON: Final[Headers] = [*SAID, ("belfry-origin-signature", PROOF)]
STATEMENT: Final = (
    b'\x01\x07{"assignment":"even","canary_interval_ms":0,"catch_up_limit_ms":30000,'
    b'"changelog":"trusted","claims":"trusted","day_store":null,"default_delivery":"PAYLOAD",'
    b'"http_worker_secret":["6c6df5167d01"],"key_group_moves":false,"lifecycle":"FAILURES",'
    b'"metering_interval_ms":0,"payload_store":null,"policies":"trusted",'
    b'"registry_lookups_per_minute":60,"registry_subjects":"TOPIC","registry_wait_ms":10000,'
    b'"schema_registry_url":false,"standbys":1,"unknown_tenants":"open",'
    b'"unknown_tenants_most":1000,"webhook_private_networks":[],"webhook_secrets":null}'
)


def asked(headers: Headers, secret: bytes = GIVEN.encode()) -> int:
    """How many homes have been asked, as an owner with this secret has it."""
    keys = keys_of([secret], Purpose.ORIGIN)
    place = SourcePartition("belfry.schedules", 3, Homes(4), keys)
    return Reports(place, ScheduleStore(MemoryMap())).asked(
        (5, 1_798_000_000_100, KEY, VALUE, headers)
    )


def test_what_the_last_release_sent_on_is_believed() -> None:
    assert asked(SENT_ON) == 1
    assert asked(SAID) == 0
    assert asked(SENT_ON, b"another secret of workers") == 0


def test_the_last_release_believes_what_this_one_sends_on() -> None:
    assert vouched(KEYS, KEY, VALUE, SAID) == SENT_ON


@pytest.mark.parametrize("secret", [GIVEN, "another secret of the workers", None])
def test_what_an_owner_of_the_last_release_said_is_understood(secret: str | None) -> None:
    kept, mine = decode(text_of(STATEMENT)), statement(Settings(http_worker_secret=secret))
    assert unsigned_until(STATEMENT) == 0
    found = unsigned_before(kept, mine, ("an id", 7))
    assert found == ({"unsigned_until": ["an id", 7]} if secret not in (GIVEN, None) else {})
    # That release compares the names that it knows.
    same = statement(Settings(http_worker_secret=GIVEN))
    assert differences(same | {"unsigned_until": ["an id", 7]}, kept) == []

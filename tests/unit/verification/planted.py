"""Ways to damage a trace, each with the finding that it has to lead to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from hashlib import blake2b
from struct import Struct

from belfry.verification.findings import Breach, Spot
from belfry.verification.memory import FiredEntry
from belfry.verification.rows import (
    MANIFEST_KEY,
    Logged,
    Sealed,
    id_of_extra,
    id_of_fire,
    id_of_past,
    manifest,
)
from tests.unit.engine.driver import FIRED, HOUR, T0
from tests.unit.verification.trace import LIFECYCLE, Trace

TOPIC = FIRED + "demo"
MANIFEST = Struct(">BBHQIqqQI16s")
MARKER = Struct(">BBBBqqQII")


def at_manifest(trace: Trace, place: int) -> tuple[int, Sealed]:
    """Where the manifest of this transaction lies in the list, and what it says."""
    found = [at for at, each in enumerate(trace.changelog) if each.key.startswith(MANIFEST_KEY)]
    at = found[place]
    return at, manifest(trace.changelog[at].value or b"")


def rewritten(trace: Trace, place: int, **changes: object) -> None:
    """Let a manifest say something else."""
    at, sealed = at_manifest(trace, place)
    said = sealed._replace(**changes)  # type: ignore[arg-type]
    trace.changelog[at] = trace.changelog[at]._replace(value=MANIFEST.pack(1, 4, 0, *said))


def all_from(trace: Trace, place: int, field: str, more: int) -> None:
    """Let all manifests from one on say more."""
    for later in range(place, -1 if place < 0 else 10**6):
        try:
            _, sealed = at_manifest(trace, later)
        except IndexError:
            return
        rewritten(trace, later, **{field: getattr(sealed, field) + more})


def digest(*identities: bytes) -> bytes:
    texts = b"".join(each.hex().encode() for each in identities)
    return blake2b(texts, digest_size=16).digest()


def forged(trace: Trace, key: bytes, marker: bytes, identity: bytes, pending: int) -> None:
    """Add a transaction that fires one event, with a manifest that fits."""
    _, sealed = at_manifest(trace, -1)
    said = sealed._replace(
        number=sealed.number + 1,
        pending=sealed.pending - pending,
        fired=1,
        digest=digest(identity),
    )
    end_ms = trace.changelog[-1].timestamp_ms
    for each, value in ((key, marker), (b"\0mx", MANIFEST.pack(1, 4, 0, *said))):
        trace.changelog.append(Logged(trace.offset, end_ms, each, value))
        trace.offset += 1
    trace.offset += 1


def came_out(
    trace: Trace, schedule_id: bytes, nominal_ms: int, identity: bytes, number: int = 0
) -> None:
    """Add an event to the output."""
    spot = Spot(TOPIC, 0, 1_000_000)
    end_ms = trace.changelog[-1].timestamp_ms
    trace.fired.append(FiredEntry(identity, schedule_id, nominal_ms, number, spot, end_ms))


def life_of(trace: Trace, key: bytes) -> tuple[int, int, int]:
    """Nominal instant, life and version of a schedule, as its last pending row says."""
    head = Struct(">BBBBqqqQQII")
    rows = [
        each.value
        for each in trace.changelog
        if each.key == key and (each.value or b"")[1:2] == b"\1"
    ]
    *_, nominal_ms, _, _, life, version, _ = head.unpack_from(rows[-1] or b"")
    return nominal_ms, life, version


def lose_a_fire(trace: Trace) -> None:
    del trace.fired[3]


def lose_a_recurring_fire(trace: Trace) -> None:
    trace.fired.remove([each for each in trace.fired if each.schedule_id == b"FIRE_ONCE"][4])


def lose_an_extra_fire(trace: Trace) -> None:
    trace.fired.remove(next(each for each in trace.fired if each.occurrence == -1))
    trace.told = [each for each in trace.told if any(each[0] == fire[0] for fire in trace.fired)]


def double_a_fire(trace: Trace) -> None:
    trace.fired.append(trace.fired[3]._replace(spot=Spot(TOPIC, 1, 1_000_000)))


def double_a_backfilled_fire(trace: Trace) -> None:
    past = next(each for each in trace.fired if each.identity in backfilled(trace))
    trace.fired.append(past._replace(spot=Spot(TOPIC, 1, 1_000_000)))


def lose_a_backfilled_fire(trace: Trace) -> None:
    identity = backfilled(trace)[3]
    trace.fired = [each for each in trace.fired if each.identity != identity]
    trace.told = [each for each in trace.told if each.identity != identity]


def fire_for_a_job_that_is_not_there(trace: Trace) -> None:
    nominal_ms, life, _ = life_of(trace, b"demo/FIRE_ALL")
    identity = id_of_past(b"demo/FIRE_ALL", life, (0, 4_711), nominal_ms)
    came_out(trace, b"FIRE_ALL", nominal_ms, identity, number=-1)


def fire_by_a_trigger_of_a_job_that_is_not_there(trace: Trace) -> None:
    nominal_ms, life, version = life_of(trace, b"demo/kept")
    identity = id_of_extra(b"demo/kept", life, version, 4_711)
    came_out(trace, b"kept", nominal_ms, identity, number=-1)


def write_a_job_that_no_release_writes(trace: Trace) -> None:
    trace.changelog.append(Logged(trace.offset, T0 + HOUR, b"\0jdemo/theirs", b"\1\x0e{}"))


def backfilled(trace: Trace) -> list[bytes]:
    """Ids of the fires of the backfill, in their order."""
    extra = [each for each in trace.fired if each.occurrence == -1]
    return [each.identity for each in extra if each.nominal_ms < each.timestamp_ms - HOUR // 3]


def fire_early(trace: Trace) -> None:
    nominal_ms, life, version = life_of(trace, b"demo/kept")
    identity = id_of_fire(b"demo/kept", life, version, nominal_ms)
    end_ms = trace.changelog[-1].timestamp_ms
    marker = MARKER.pack(1, 2, 0, 0, end_ms, nominal_ms, life, version, 1)
    forged(trace, b"demo/kept", marker, identity, 1)
    came_out(trace, b"kept", nominal_ms, identity)


def change_a_digest(trace: Trace) -> None:
    rewritten(trace, 4, digest=bytes(16))


def swap_two_fires(trace: Trace) -> None:
    """Their order is what a digest is for."""
    at = next(
        at for at in range(200) if sum(at_manifest(trace, at)[1][5:6]) == 2
        and trace.changelog[at_manifest(trace, at)[0] - 1].value
    )  # fmt: skip
    end, _ = at_manifest(trace, at)
    first, second = trace.changelog[end - 2 : end]
    trace.changelog[end - 2] = second._replace(offset=first.offset)
    trace.changelog[end - 1] = first._replace(offset=second.offset)


def skip_a_number(trace: Trace) -> None:
    all_from(trace, 9, "number", 1)


def repeat_a_number(trace: Trace) -> None:
    all_from(trace, 9, "number", -1)


def go_back_with_an_epoch(trace: Trace) -> None:
    rewritten(trace, 9, epoch=0)


def go_back_with_the_position(trace: Trace) -> None:
    rewritten(trace, 9, position=3)


def go_back_with_the_watermark(trace: Trace) -> None:
    _, sealed = at_manifest(trace, -2)
    rewritten(trace, -1, watermark_ms=sealed.watermark_ms - 1)


def fire_what_was_cancelled(trace: Trace) -> None:
    nominal_ms, life, version = life_of(trace, b"demo/gone")
    came_out(trace, b"gone", nominal_ms, id_of_fire(b"demo/gone", life, version, nominal_ms))


def fire_nothing(trace: Trace) -> None:
    came_out(trace, b"nobody", T0, bytes(16))


def end_what_was_not_there(trace: Trace) -> None:
    identity = id_of_fire(b"demo/nobody", 7, 1, T0)
    marker = MARKER.pack(1, 2, 0, 0, T0 + HOUR, T0, 7, 1, 1)
    forged(trace, b"demo/nobody", marker, identity, 0)
    came_out(trace, b"nobody", T0, identity)


def tell_of_no_fire(trace: Trace) -> None:
    trace.add_told("ab" * 16, "s1", T0)


def tell_twice(trace: Trace) -> None:
    trace.told.append(trace.told[2]._replace(spot=Spot(LIFECYCLE, 1, 0)))


def write_as_a_stranger(trace: Trace) -> None:
    row = Logged(trace.offset, T0 + HOUR, b"demo/theirs", trace.changelog[0].value, stranger=True)
    trace.changelog.append(row)


def write_nonsense(trace: Trace) -> None:
    trace.changelog.append(Logged(trace.offset, T0 + HOUR, b"demo/theirs", b"\1\x63"))


def lose_a_row(trace: Trace) -> None:
    """A schedule's row, of which no fire tells: only the count of those that wait does."""
    at = next(at for at, each in enumerate(trace.changelog) if each.key == b"demo/kept")
    trace.changelog[at] = trace.changelog[at]._replace(key=b"\0xx")


def leave_the_manifest_out(trace: Trace) -> None:
    trace.changelog.append(Logged(trace.offset, T0 + HOUR, b"demo/new", trace.changelog[0].value))


def leave_a_due_schedule_alone(trace: Trace) -> None:
    """A schedule that waits for a later instant waited for one that has passed."""
    at = max(at for at, each in enumerate(trace.changelog) if each.key == b"demo/kept")
    row = trace.changelog[at]
    due = Struct(">qq").pack(T0 + HOUR // 3, T0 + HOUR // 3)
    value = row.value or b""
    trace.changelog[at] = row._replace(value=value[:4] + due + value[20:])


@dataclass
class Planted:
    """A way to damage a trace, and what has to be found."""

    plant: Callable[[Trace], None]
    breach: Breach


PLANTED = [
    Planted(lose_a_fire, Breach.LOST),
    Planted(lose_a_recurring_fire, Breach.LOST),
    Planted(lose_an_extra_fire, Breach.COUNT),
    Planted(double_a_fire, Breach.DOUBLED),
    Planted(double_a_backfilled_fire, Breach.DOUBLED),
    Planted(lose_a_backfilled_fire, Breach.COUNT),
    Planted(fire_for_a_job_that_is_not_there, Breach.UNASKED),
    Planted(fire_by_a_trigger_of_a_job_that_is_not_there, Breach.UNASKED),
    Planted(write_a_job_that_no_release_writes, Breach.STRANGER),
    Planted(fire_early, Breach.EARLY),
    Planted(change_a_digest, Breach.DIGEST),
    Planted(swap_two_fires, Breach.DIGEST),
    Planted(skip_a_number, Breach.NUMBER),
    Planted(repeat_a_number, Breach.NUMBER),
    Planted(go_back_with_an_epoch, Breach.EPOCH),
    Planted(go_back_with_the_position, Breach.POSITION),
    Planted(go_back_with_the_watermark, Breach.WATERMARK),
    Planted(fire_what_was_cancelled, Breach.CANCELLED),
    Planted(fire_nothing, Breach.UNASKED),
    Planted(end_what_was_not_there, Breach.UNASKED),
    Planted(tell_of_no_fire, Breach.UNTOLD_FIRE),
    Planted(tell_twice, Breach.TOLD_TWICE),
    Planted(write_as_a_stranger, Breach.STRANGER),
    Planted(write_nonsense, Breach.STRANGER),
    Planted(lose_a_row, Breach.PENDING),
    Planted(leave_the_manifest_out, Breach.TORN),
    Planted(leave_a_due_schedule_alone, Breach.OVERDUE),
]

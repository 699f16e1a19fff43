"""Where a tenant has to sign, a claim without its signature is refused and leaves nothing."""

from __future__ import annotations

import hashlib
import hmac
from struct import pack
from zlib import crc32

import pytest

from belfry.engine.claims import STRANGER, STRANGERS_LANES, claimed, stranger_of
from belfry.engine.effects import Effects
from belfry.engine.forward import TenantInput, forward_requests
from belfry.engine.reports import SourcePartition
from belfry.schedules.identity import Homes
from belfry.tenants.canary import CANARY
from belfry.tenants.deliveries import RETRIES
from belfry.tenants.effective import EffectivePolicy, Level, Signing
from belfry.tenants.policy import TenantPolicy
from belfry.wire.claims import signature
from belfry.wire.record import Headers
from tests.unit.engine.driver import HOUR, T0, Driver, request

SECRET = b"the secret of tenant demo"
WORKERS = b"the secret of the workers"


def signing(driver: Driver, *secrets: bytes) -> Driver:
    """Let tenant `demo` sign by its policy."""
    policy = TenantPolicy("demo", lifecycle="ALL", signing_secret_ref="env:X")
    driver.tenants.signing = Signing(everybody=False, requests=(WORKERS,))
    driver.tenants.follow(EffectivePolicy(policy, secrets=secrets))
    return driver


def signed(
    value: bytes | None, key: bytes | None = None, headers: Headers | None = None
) -> Headers:
    shown = signature(SECRET, "demo", key, value, headers)
    return [*(headers or []), ("belfry-signature", shown)]


def by_hand(*fields: bytes | None) -> bytes:
    """The signature as the page tells others to make it."""
    told = b"".join(
        b"\xff\xff\xff\xff" if each is None else pack(">I", len(each)) + each for each in fields
    )
    return hmac.new(SECRET, told, hashlib.sha256).hexdigest().encode()


def test_the_signature_is_what_the_page_says() -> None:
    headers: Headers = [("a", b"1"), ("b", None), ("belfry-origin-topic", b"left out")]
    given = signature(SECRET, "demo", b"k", None, headers)
    assert given == by_hand(b"demo", b"k", None, b"a", b"1", b"b", None)


@pytest.mark.parametrize("everybody", [False, True])
def test_retries_are_believed_of_workers_alone(everybody: bool) -> None:
    driver = Driver()
    driver.tenants.signing = Signing(everybody, (b"for requests",), (b"the next one", WORKERS))
    value = request(tenant=RETRIES, at=T0 + HOUR)
    driver.send(value)
    shown = signature(WORKERS, RETRIES, None, value, [])
    driver.send(value, headers=[("belfry-signature", shown)])
    assert driver.step(T0).codes == ["unsigned"]
    assert driver.engine.pending == 1
    # Workers that share no secret sign nothing.  A retry of theirs counts, unless all have to sign:
    # then no such worker starts, and what is unsigned is a stranger's.
    driver = Driver()
    driver.tenants.signing = Signing(everybody)
    driver.send(value)
    assert driver.step(T0).codes == (["unsigned"] if everybody else [])


@pytest.mark.parametrize("everybody", [False, True])
def test_probes_are_believed_of_workers_alone(everybody: bool) -> None:
    driver = Driver()
    driver.tenants.signing = Signing(everybody, (b"requests",), (b"deliveries",), (WORKERS,))
    value = request(tenant=CANARY, at=T0 + HOUR)
    for secret in (b"requests", b"deliveries", WORKERS):
        shown = signature(secret, CANARY, None, value, [])
        driver.send(value, headers=[("belfry-signature", shown)])
    driver.send(value)
    assert driver.step(T0).codes == ["bad_signature", "bad_signature", "unsigned"]
    assert driver.engine.pending == 1


def test_a_signed_request_counts() -> None:
    driver = signing(Driver(), SECRET)
    value = request(at=T0 + HOUR)
    driver.send(value, b"demo", signed(value, b"demo"))
    assert driver.step(T0).outcomes == ["ACCEPTED"]


def test_headers_and_cancels_are_signed_too_and_the_signature_does_not_travel() -> None:
    driver = signing(Driver(), SECRET)
    asked: Headers = [("belfry-tenant", b"demo"), ("belfry-id", b"a"), ("belfry-in", b"5m")]
    driver.send(b"v", b"k", signed(b"v", b"k", [*asked, ("mine", b"1")]))
    driver.send(b"v", b"k", signed(b"v", b"k", [*asked[:1], ("belfry-id", b"b"), asked[2]]))
    driver.send(None, b"demo/b", signed(None, b"demo/b"))
    assert driver.step(T0).outcomes == ["ACCEPTED", "ACCEPTED", "CANCELLED"]
    (shot,) = driver.step(T0 + HOUR).shots
    assert shot.headers[0] == ("mine", b"1")
    assert "belfry-signature" not in dict(shot.headers)


def test_what_is_not_signed_is_refused_even_if_it_is_plain() -> None:
    driver = Driver(level=Level.FAILURES)
    driver.ask(at=T0 + HOUR, schedule_id="before")
    driver.step(T0)
    policy = TenantPolicy("demo", signing_secret_ref="env:X")
    driver.tenants.follow(EffectivePolicy(policy, secrets=(SECRET,)))
    driver.ask(at=T0 + HOUR)
    driver.send(None, b"demo/a")
    assert driver.step(T0).codes == ["unsigned", "unsigned"]
    assert driver.engine.pending == 1


@pytest.mark.parametrize("change", ["value", "key", "tenant", "header", "secret"])
def test_what_was_changed_after_it_was_signed_is_refused(change: str) -> None:
    driver = signing(Driver(), SECRET if change != "secret" else b"another secret of demo")
    value, key, headers = request(at=T0 + HOUR), b"demo", signed(request(at=T0 + HOUR), b"demo")
    if change == "value":
        value = request(at=T0 + HOUR + 1)
    elif change == "key":
        key = b"other"
    elif change == "header":
        headers.append(("more", b"1"))
    elif change == "tenant":
        headers = [("belfry-signature", signature(SECRET, "other", key, value, None))]
    driver.send(value, key, headers)
    assert driver.step(T0).codes == ["bad_signature"]


def test_a_forged_request_uses_up_no_request_id() -> None:
    driver = signing(Driver(), SECRET)
    driver.ask(at=5, request_id="r")
    assert driver.step(T0).codes == ["unsigned"]
    value = request(at=T0 + HOUR, request_id="r")
    driver.send(value, None, signed(value))
    assert driver.step(T0).outcomes == ["ACCEPTED"]


def test_either_secret_counts_while_they_change() -> None:
    driver = signing(Driver(), b"the next secret of demo", SECRET)
    value = request(at=T0 + HOUR)
    driver.send(value, None, signed(value))
    assert driver.step(T0).outcomes == ["ACCEPTED"]


def test_others_need_not_sign_unless_all_have_to() -> None:
    driver = signing(Driver(), SECRET)
    driver.ask(tenant="free", at=T0 + HOUR)
    assert driver.step(T0).outcomes == ["ACCEPTED"]
    strict = Driver()
    strict.tenants.signing = Signing(everybody=True)
    strict.ask(tenant="free", at=T0 + HOUR)
    strict.ask(tenant="free", at=T0 + HOUR)
    assert strict.step(T0).codes == ["unsigned", "unsigned"]


def test_a_signed_stray_is_believed_at_its_home() -> None:
    homes = Homes(4)
    home = homes.of("demo")
    away = signing(Driver(partition=(home + 1) % 4, partitions=4), SECRET)
    value = request(at=T0 + HOUR)
    away.send(value, b"k", signed(value, b"k"))
    (stray,) = away.step(T0).effects.rerouted
    driver = signing(Driver(partition=home, partitions=4), SECRET)
    driver.send(stray.value, stray.key, stray.headers, timestamp_ms=T0 + 1)
    assert driver.step(T0 + 1).outcomes == ["ACCEPTED"]


@pytest.mark.parametrize("secret", [SECRET, WORKERS])
def test_what_is_handed_over_is_signed_by_the_worker(secret: bytes) -> None:
    tenant_input = TenantInput(
        SourcePartition("belfry.schedules.demo", 0, Homes(1)), "demo", secret
    )
    value = request(tenant="yours", at=T0 + HOUR)
    forged: Headers = [("belfry-signature", b"x")]
    (handed,) = forward_requests(
        [(7, T0, None, value, forged)], tenant_input, T0, Effects()
    ).rerouted
    driver = signing(Driver(), SECRET)
    driver.send(handed.value, handed.key, handed.headers, timestamp_ms=T0 + 1)
    assert driver.step(T0 + 1).outcomes == ["ACCEPTED"]
    # The stamp is part of what is signed: it cannot be put on another tenant.
    other = signing(Driver(), SECRET)
    other.tenants.signing = Signing(everybody=True, requests=(WORKERS,))
    moved = [(n, b"victim" if n == "belfry-origin-tenant" else v) for n, v in handed.headers]
    other.send(handed.value, handed.key, moved, timestamp_ms=T0 + 1)
    assert other.step(T0 + 1).codes == ["bad_signature"]


@pytest.mark.parametrize(
    ("key", "stamp", "name"),
    [
        (b"demo", None, b"demo"),
        (b"demo/a", None, b"demo"),
        (None, None, b""),
        (b"demo/a", b"mine", b"mine"),
        (None, b"mine", b"mine"),
        (b"n" * 100, None, b"n" * 100),
        (b"n" * 101, None, b""),
        (b"demo", b"n" * 101, b""),
    ],
)
def test_what_a_record_shows_is_its_stamp_or_the_begin_of_its_key(
    key: bytes | None, stamp: bytes | None, name: bytes
) -> None:
    headers: Headers | None = None if stamp is None else [("belfry-origin-tenant", stamp)]
    record = (7, T0, key, b"", headers)
    assert claimed(record) == name
    assert stranger_of(record) == STRANGER + bytes([crc32(name) % STRANGERS_LANES])


def test_a_cancel_with_an_unknown_header_is_refused_under_the_names_in_its_key() -> None:
    driver = Driver(Level.FAILURES)
    driver.send(None, b"demo/a", [("belfry-acton", b"UPSERT")])
    (told,) = driver.step(T0).effects.lifecycle
    assert (told.tenant, told.schedule_id, told.code) == ("demo", "a", "unknown_header")

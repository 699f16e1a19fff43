"""Secrets in headers of targets: read when they are sent, and by nobody who must not."""

from __future__ import annotations

import pickle
from dataclasses import replace
from pathlib import Path

import pytest

from belfry.delivery.http_requests import NoSecret, Secrets, post_of
from belfry.delivery.references import UNSIGNED, References
from belfry.delivery.work import Work
from belfry.policies.secrets import SecretPlaces
from belfry.schedules.targets import HttpTarget
from belfry.tenants.deliveries import DeliveryState, decode_state, encode_state, first_states
from belfry.tenants.policy import TenantPolicy
from belfry.wire.fired import FiredEvent

REF = "file:shop/key"
SECRET = "sk-0123456789abcdef"
TARGET = HttpTarget("https://api.example.com/", headers=(("Authorization", f"Bearer ${{{REF}}}"),))
EVENT = FiredEvent("shop", "a", "f", 1, 0, 0, 0, 0, payload=b"p")
HOSTS = ("api.example.com",)


class Clock:
    """A clock that the test holds."""

    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "key").write_text(SECRET + "\nan-older-one-0123456\n")
    return tmp_path


def work(*refs: str, target: HttpTarget = TARGET) -> Work:
    return Work(b"k", b"", EVENT, [], DeliveryState((target,), hosts=HOSTS, refs=refs))


def references(folder: Path, clock: Clock | None = None) -> References:
    return References(SecretPlaces(folder), trusted=True, clock=clock or Clock())


def test_the_secret_stands_in_the_post_and_nowhere_else(folder: Path) -> None:
    given = work(REF)
    post = post_of(given, TARGET, Secrets({}), 0, references(folder).value)
    assert dict(post.headers)["authorization"] == f"Bearer {SECRET}"
    assert SECRET not in repr(given)
    assert SECRET.encode() not in encode_state(given.state)


def test_headers_of_the_event_are_nobodys_templates(folder: Path) -> None:
    given = replace(work(REF), headers=[("x-mine", f"${{{REF}}}".encode())])
    post = post_of(given, TARGET, Secrets({}), 0, references(folder).value)
    assert dict(post.headers)["x-mine"] == f"${{{REF}}}"


def test_what_the_policy_did_not_allow_at_the_fire_is_not_read(folder: Path) -> None:
    with pytest.raises(NoSecret, match="did not allow"):
        references(folder).value(work(), f"${{{REF}}}")


def test_nothing_is_read_where_anybody_could_make_a_delivery(folder: Path) -> None:
    with pytest.raises(NoSecret, match="BELFRY_HTTP_WORKER_SECRET"):
        References(SecretPlaces(folder)).value(work(REF), f"${{{REF}}}")
    assert "BELFRY_HTTP_WORKER_SECRET" in UNSIGNED


@pytest.mark.parametrize(
    ("text", "why"),
    [("short", "at least 16"), ("é" * 20, "no printable"), ("x" * 20 + "\x01", "no printable")],
)
def test_a_secret_that_is_none_is_not_sent_and_not_told(folder: Path, text: str, why: str) -> None:
    (folder / "shop" / "key").write_text(text)
    with pytest.raises(NoSecret, match=why) as told:
        references(folder).value(work(REF), f"${{{REF}}}")
    assert text not in str(told.value)


def test_a_changed_secret_is_read_again_after_a_second(folder: Path) -> None:
    clock = Clock()
    given = references(folder, clock)
    assert given.value(work(REF), f"${{{REF}}}") == SECRET
    (folder / "shop" / "key").write_text("sk-another-0123456789")
    clock.now_s = 0.9
    assert given.value(work(REF), f"${{{REF}}}") == SECRET
    clock.now_s = 1.0
    assert given.value(work(REF), f"${{{REF}}}") == "sk-another-0123456789"


def test_what_only_posts_gets_the_secret_with_the_work_and_reads_nothing(folder: Path) -> None:
    handed = pickle.loads(pickle.dumps(references(folder).handed_over(work(REF))))
    assert References().value(handed, f"${{{REF}}}") == SECRET
    with pytest.raises(NoSecret, match="its log says why"):
        References().value(work(REF), f"${{{REF}}}")


def test_a_secret_that_cannot_be_read_is_handed_over_as_missing(folder: Path) -> None:
    (folder / "shop" / "key").unlink()
    given = work(REF)
    assert references(folder).handed_over(given) == given
    assert not references(folder).handed_over(given).secrets


def test_a_delivery_takes_along_what_its_policy_allows_of_what_it_names() -> None:
    policy = TenantPolicy("shop", allowed_hosts=HOSTS, secret_refs=(REF, "file:shop/unused"))
    (first,) = first_states([TARGET], policy, tell=False)
    assert decode_state(first).refs == (REF,)
    (blocked,) = first_states([TARGET], replace(policy, secret_refs=()), tell=False)
    assert decode_state(blocked).refs == ()


def test_a_delivery_without_references_is_written_as_ever() -> None:
    assert b"refs" not in encode_state(DeliveryState((HttpTarget("https://a/"),)))

"""Addresses of webhooks: forms that hold a special address, URLs that can be read in two ways, and
policies that reach for what is not theirs.

What is right comes from IANA's registries as this file cites them, RFC 3986, and docs/webhooks.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from ipaddress import IPv4Address, IPv4Network, IPv6Address
from typing import Final

from belfry.delivery.addresses import refusal
from belfry.schedules.target_kinds import is_allowed, problems_of
from belfry.schedules.targets import HttpTarget
from belfry.tenants.policy import TenantPolicy, problems
from belfry.tenants.policy_references import secret_ref_problem
from tests.attack.family import Attack, judge

# Networks that no webhook may reach, written down once more: the table under attack is not asked.
SPECIAL: Final = (
    *("0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12"),
    *("192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15"),
    *("198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4", "255.255.255.255/32"),
    *("168.63.129.16/32",),
)
PUBLIC: Final = (
    "1.1.1.1",
    "8.8.8.8",
    "93.184.216.34",
    "172.32.0.1",
    "192.167.255.255",
    "223.255.255.1",
)
Form = Callable[[int], str]
# Ways to write an IPv4 address; True where a public one is dialled.
FORMS: Final[dict[str, tuple[Form, bool]]] = {
    "itself": (lambda v4: str(IPv4Address(v4)), True),
    "mapped": (lambda v4: str(IPv6Address(0xFFFF << 32 | v4)), True),
    "mapped, dotted": (lambda v4: f"::ffff:{IPv4Address(v4)}", True),
    "nat64": (lambda v4: f"64:ff9b::{IPv4Address(v4)}", True),
    "isatap": (lambda v4: f"2606:4700::5efe:{IPv4Address(v4)}", True),
    "isatap, universal": (lambda v4: f"2606:4700::200:5efe:{IPv4Address(v4)}", True),
    "zone": (lambda v4: f"::ffff:{IPv4Address(v4)}%eth0", True),
    "6to4": (lambda v4: str(IPv6Address(0x2002 << 112 | v4 << 80)), False),
    "teredo server": (lambda v4: str(IPv6Address(0x20010000 << 96 | v4 << 64)), False),
    "teredo client": (lambda v4: str(IPv6Address(0x20010000 << 96 | (v4 ^ 0xFFFFFFFF))), False),
    "nat64 local": (lambda v4: f"64:ff9b:1::{IPv4Address(v4)}", False),
    "nat64 local /48": (
        lambda v4: str(IPv6Address(0x64FF9B0001 << 80 | v4 >> 16 << 64 | (v4 & 0xFFFF) << 40)),
        False,
    ),
    "compatible": (lambda v4: f"::{IPv4Address(v4)}", False),
    "translated": (lambda v4: f"::ffff:0:{IPv4Address(v4)}", False),
    "site local": (lambda v4: f"fec0::{IPv4Address(v4)}", False),
    "link local isatap": (lambda v4: f"fe80::5efe:{IPv4Address(v4)}", False),
    "number": (str, False),
    "hex": (hex, False),
    "octal": (lambda v4: f"0{v4:o}", False),
    "short": (lambda v4: f"{v4 >> 24}.{v4 & 0xFFFFFF}", False),
    "leading zeros": (lambda v4: "0" + str(IPv4Address(v4)), False),
    "dot behind": (lambda v4: f"{IPv4Address(v4)}.", False),
    "blank": (lambda v4: f" {IPv4Address(v4)}", False),
    "nul": (lambda v4: f"{IPv4Address(v4)}\0", False),
    "net": (lambda v4: f"{IPv4Address(v4)}/32", False),
    "port": (lambda v4: f"{IPv4Address(v4)}:80", False),
}


def addresses() -> Iterator[Attack[str]]:
    """First, last and a middle address of each special network, and public ones, in each form."""
    for form, (write, dialled) in FORMS.items():
        for network in map(IPv4Network, SPECIAL):
            for number in {network[0], network[-1], network[network.num_addresses // 2]}:
                yield Attack(f"{form} {number} of {network}", write(int(number)), "refused")
        for public in PUBLIC:
            right = "dialled" if dialled else "refused"
            yield Attack(f"{form} {public}", write(int(IPv4Address(public))), right)


def test_no_form_of_a_special_address_is_dialled() -> None:
    judge(addresses(), lambda text: "dialled" if refusal(text, ()) is None else "refused", 1_000)


# Signs that RFC 3986 has in a host name as belfry takes it; all others end or bend the host.
IN_HOST: Final = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789.-_")
IN_PATH: Final = IN_HOST | frozenset("~:/?@!$&'()*+,;=%[]")
REFUSED_URLS: Final = (
    *("", "http:", "http://", "http:///x", "https:/a", "//a/x", "a/x", "/x", "http:a", "HTTP//a"),
    *("ftp://a/", "file:///etc/passwd", "gopher://a/", "dict://a", "ws://a/", "unix:/x", "data:,x"),
    *(
        "javascript:alert(1)",
        "http+unix://a/",
        "jar:http://a!/",
        "ldap://a/",
        "mailto:a@b",
        "blob:x",
    ),
    *(
        "http://u@a/",
        "http://u:p@a/",
        "http://a@127.0.0.1/",
        "http://@a/",
        "http://a#b",
        "http://a/#b",
    ),
    *(
        "http://a:0/",
        "http://a:65536/",
        "http://a:99999/",
        "http://a:-1/",
        "http://a:x/",
        "http://a:8o/",
    ),
    *("http://127.1/", "http://0/", "http://2130706433/", "http://0x7f.1/", "http://0177.0.0.1/"),
    *("http://127.0.0.1.1/", "http://256.1.1.1/", "http://1.1.1/", "http://a.0x10/", "http://a.1/"),
    *("http://[::1/", "http://::1/", "http://[::1%25eth0]/", "http://[g::1]/", "http://[::1]x/"),
    *(
        "http://[1.2.3.4]/",
        "http://[]/",
        "http://[::1]:x/",
        "http://a\\@b/",
        "http:\\\\a\\",
        "http://.a/",
    ),
    *("http://-a/", "http://a-/", "http://a..b\\/", "http://\u0430.example/", "http://a\u3002b/"),
    *(
        "http://a/\r\nX: y",
        "http://a/ HTTP/1.1",
        "http://a\t/",
        "http://a/\x00",
        " http://a/",
        "http://a/ ",
    ),
    *("http://" + "a" * 2_050, "http://a/" + "x" * 2_050, "http://\u2488.1.1.1/", "http://\uff41/"),
)
FINE_URLS: Final = (
    *(
        "http://a/",
        "https://a",
        "https://a.b.c/x?y=z",
        "http://a:1/",
        "http://a:65535/",
        "https://a?x",
    ),
    *(
        "http://1.2.3.4/",
        "http://[2606:4700::1111]/",
        "https://xn--e1afmkfd.example/",
        "http://a_b/",
    ),
)


def urls() -> Iterator[Attack[str]]:
    """Addresses of targets: absolute, http or https, in ASCII, read in one way."""
    for url in REFUSED_URLS:
        yield Attack(f"{url[:40]!r} of {len(url)}", url, "refused")
    for url in FINE_URLS:
        yield Attack(url, url, "taken")
    for code in range(0x100):
        sign = chr(code)
        taken = "taken" if sign in IN_HOST or sign in ":/?" else "refused"
        if sign != ":":
            yield Attack(f"host with {sign!r}", f"http://a{sign}b/x", taken)
        yield Attack(
            f"path with {sign!r}", f"http://a/x{sign}y", "taken" if sign in IN_PATH else "refused"
        )


def test_an_address_is_read_in_one_way() -> None:
    judge(urls(), lambda url: "refused" if problems_of(HttpTarget(url)) else "taken", 500)


SMUGGLED: Final = ("\r\n", "\n", "\r", "\x00", "\x7f", "\x01", "\x0b", "\x85", "\u2028", "\xe9")
OWN_HEADERS: Final = (
    *("host", "content-length", "transfer-encoding", "connection", "keep-alive", "upgrade", "te"),
    *(
        "trailer",
        "expect",
        "proxy-authorization",
        "webhook-id",
        "webhook-timestamp",
        "webhook-signature",
    ),
)


def target_headers() -> Iterator[Attack[tuple[str, str]]]:
    """A target's headers: no line of its own, and none of the connection or of the signature."""
    for code in range(0x80):
        sign = chr(code)
        token = sign.isalnum() or sign in "!#$%&'*+-.^_`|~"
        yield Attack(f"name with {sign!r}", (f"x{sign}y", "v"), "taken" if token else "refused")
    for text in SMUGGLED:
        yield Attack(f"value with {text!r}", ("x", f"a{text}Injected: b"), "refused")
        yield Attack(f"name ends in {text!r}", (f"x{text}", "v"), "refused")
    for name in OWN_HEADERS:
        for way in (name, name.upper(), name.title()):
            yield Attack(f"own {way}", (way, "v"), "refused")
    yield Attack("no name", ("", "v"), "refused")
    yield Attack("authorization", ("Authorization", "Bearer x"), "taken")


def test_no_header_of_a_target_adds_a_line_or_speaks_for_belfry() -> None:
    def answer(given: tuple[str, str]) -> str:
        target = HttpTarget("https://a/", headers=(given,))
        return "refused" if problems_of(target) else "taken"

    judge(target_headers(), answer, 150)


def hosts() -> Iterator[Attack[tuple[str, str]]]:
    """`allowed_hosts`: these names alone; *.name stands for those below."""
    for rule, url, right in (
        ("a.example", "https://a.example/", True),
        ("a.example", "https://A.EXAMPLE./", True),
        ("a.example", "https://a.example:8443/x", True),
        ("*.example", "https://a.example/", True),
        ("*.example", "https://a.b.example/", True),
        ("*.example", "https://example/", False),
        ("*.example", "https://badexample/", False),
        ("a.example", "https://b.a.example/", False),
        ("a.example", "https://a.example.evil/", False),
        ("a.example", "https://evil/a.example", False),
        ("a.example", "https://evil?a.example", False),
        ("a.example", "https://axexample/", False),
        ("1.2.3.4", "https://1.2.3.4.evil.example/", False),
    ):
        yield Attack(f"{rule} {url}", (rule, url), right)


def test_lists_of_hosts() -> None:
    judge(hosts(), lambda given: is_allowed(HttpTarget(given[1]), (given[0],)), 10)


def policies() -> Iterator[Attack[TenantPolicy]]:
    """Topics that are none, and numbers without measure."""
    for code in range(0x80):
        sign = chr(code)
        right = "taken" if sign in IN_HOST else "refused"
        yield Attack(f"topic with {sign!r}", TenantPolicy("a", output_topic=f"x{sign}y"), right)
    for topic in (".", "..", "", "x" * 250, "x/../y", "x\n", "\u0430"):
        yield Attack(f"topic {topic[:9]!r}", TenantPolicy("a", output_topic=topic), "refused")
    for spread in (0, -1, 1_025, 2**31):
        yield Attack(f"spread {spread}", TenantPolicy("a", spread=spread), "refused")
    for rate in (-1.0, float("nan"), float("inf"), 1e300):
        yield Attack(f"rate {rate}", TenantPolicy("a", max_requests_per_second=rate), "refused")
        yield Attack(f"fires {rate}", TenantPolicy("a", max_fires_per_second=rate), "refused")
    for name in (
        "look_back_ms",
        "history_ms",
        "max_pending",
        "retry_initial_ms",
        "retry_max_age_ms",
    ):
        for value in (-1, -(2**63)):
            policy = TenantPolicy("a", **{name: value})  # type: ignore[arg-type]  # all are numbers
            yield Attack(f"{name} {value}", policy, "refused")
    for ref in (
        "plain secret",
        "env:",
        "file:",
        "http://a/",
        "env:A B",
        "env:A=B",
        "FILE:/x",
        "exec:id",
    ):
        yield Attack(f"ref {ref}", TenantPolicy("a", signing_secret_ref=ref), "refused")
    for delivery in ("delivery", "guarantee", "lifecycle", "misfire"):
        policy = TenantPolicy("a", **{delivery: "UNKNOWN"})  # type: ignore[arg-type]  # a newer release's
        yield Attack(f"{delivery} of a newer release", policy, "refused")


def test_policies_that_cannot_be_meant() -> None:
    judge(policies(), lambda policy: "refused" if problems(policy) else "taken", 150)


def test_policies_name_no_variable_but_those_made_for_them() -> None:
    names = ("PATH", "HOME", "BELFRY_KAFKA", "BELFRY_HTTP_WORKER_SECRET", "AWS_SECRET_ACCESS_KEY")
    more = (
        "BELFRY_SECRET",
        "BELFRY_SECRET_",
        "belfry_secret_a",
        "XBELFRY_SECRET_A",
        "BELFRY_SECRETS",
    )
    given = [Attack(name, f"env:{name}", True) for name in (*names, *more)]
    given.append(Attack("made for them", "env:BELFRY_SECRET_SHOP", False))
    judge(given, lambda ref: secret_ref_problem(ref) is not None, 11)

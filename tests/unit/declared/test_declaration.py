"""What files declare, and how what is wrong with them is told: file, line, field, nearest name."""

from __future__ import annotations

import pytest

from belfry.declared.declaration import Declaration, declaration
from belfry.declared.yaml_lines import BadDeclaration, Complaints

HEAD = "set: s\nkept_in: t\ntenants:\n  t:\n"
NOW_MS = 1_900_000_000_000


def imported(file: str, kind: str, which: str, years: tuple[int, int]) -> tuple[list[str], str]:
    if which == "XX":
        raise ValueError(f"nobody knows {which}")
    return [f"{year}-05-01" for year in years], f"{kind} {which} of {file}"


def of(body: str) -> Declaration:
    return declaration([("a.yaml", HEAD + body)], imported)


def schedule(fields: str) -> Declaration:
    return of(f"    schedules:\n      a: {fields}\n")


@pytest.mark.parametrize(
    ("fields", "name", "value"),
    [
        ("{at: 2060-01-01T00:00:00Z}", "at", 2_840_140_800_000),
        ("{at: 2060-01-01T01:00:00+01:00}", "at", 2_840_140_800_000),
        ("{at: 2840140800000}", "at", 2_840_140_800_000),
        ("{in: 5m}", "delay_ms", 300_000),
        ("{every: PT1M}", "interval_ms", 60_000),
        ("{interval_ms: 60000}", "interval_ms", 60_000),
        ('{cron: "0 9 * * *"}', "cron", "0 9 * * *"),
        ("{rrule: FREQ=DAILY, start_at: 2060-01-01T00:00:00Z}", "rrule", "FREQ=DAILY"),
        ("{in: 1s, payload_json: {b: [1, null]}}", "payload", b'{"b":[1,null]}'),
        ("{in: 1s, payload_base64: AP8=}", "payload", b"\x00\xff"),
        ("{in: 1s, headers: {b: x, a: null}}", "headers",
         [{"name": "b", "value": b"x"}, {"name": "a", "value": None}]),
    ],
)  # fmt: skip
def test_every_trigger_and_every_form(fields: str, name: str, value: object) -> None:
    found = schedule(fields).schedules["t", "a"]
    assert found.request[name] == value
    complaints = Complaints()
    found.check(NOW_MS, complaints)
    assert complaints.lines == []


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ("    schedules: {a: {in: 1s, in: 2s}}", "a.yaml:5: t/a.in: stands in line 5 already"),
        ("    policy: {spred: 2}", "a.yaml:5: t.policy.spred: no such field. Did you mean spread?"),
        ("    policy:\n      spread: 0", "a.yaml:6: t.policy.spread: spread is 0; 1 to 1024"),
        ("    policy:\n      spread: many", "a.yaml:6: t.policy.spread: spread is 'many': "),
        ("    policy: {guarantee: EXACTLY_ONE}",
         "EXACTLY_ONE': give one of EXACTLY_ONCE, AT_LEAST_ONCE; did you mean EXACTLY_ONCE?"),
        ("    schedules:\n      a: {in: 1s, bulk: x}", "a.yaml:6: t/a.bulk: no such field"),
        ("    policies: {}", "a.yaml:5: t.policies: no such field. Did you mean policy?"),
        ("    schedules:\n      a: {evry: 1m}",
         "a.yaml:6: t/a.evry: no such field. Did you mean every?"),
        ("    schedules:\n      a: {every: 1m, in: 1s}",
         "a.yaml:6: t/a: exactly one of at, in, every"),
        ("    schedules:\n      a: {payload: x}", "says when; given: none"),
        ("    schedules:\n      a: {in: 1s, payload: yes}", "True is no text: put it in quotes"),
        ("    schedules:\n      a:\n        in: 1s\n        misfire: SKIPP",
         "a.yaml:8: t/a.misfire: "),
        ("    schedules:\n      a: {at: 2060-01-01}", "is a day: give an instant"),
        ("    schedules:\n      a: {at: 2060-01-01T00:00:00}", "no time zone"),
        ("    schedules:\n      a: {in: 1s}\n      a: {in: 2s}",
         "a.yaml:7: t.schedules.a: stands in line 6"),
        ("    schedules:\n      belfry/sets/s: {in: 1s}", "are records of sets"),
        ("    calendars: {de: {dayz: [2026-12-25]}}",
         "a.yaml:5: t.calendars.de.dayz: no such field. Did you mean days?"),
        ("    calendars: {de: {}}", "a.yaml:5: t.calendars.de: has no days off: give days"),
        ("    calendars: {d/e: {weekend: [SUN]}}", "t.calendars.d/e: is no name of a calendar"),
        ("    calendars: {de: {days: [25]}}", "t.calendars.de: has the day 25: give dates such as"),
        ("    calendars: {de: {weekend: [SAT, SO]}}",
         "t.calendars.de: has the weekend ['SAT', 'SO'"),
        ("    calendars: {de: {days: [2026-12-25T09:00:00Z]}}", "t.calendars.de: "),
        ("    calendars:\n      de: {weekend: [SUN]}\n      de: {weekend: [SAT]}",
         "stands in line 6"),
        ("    calendars: {de: {country: DE, ics: a.ics, years: 2026}}",
         "t.calendars.de: has country and ics: give one of country and ics, and years with it"),
        ("    calendars: {de: {weekend: [SUN], years: 2026}}", "t.calendars.de: has years: give"),
        ("    calendars: {no: {country: NO, years: 2026}}", "has the country False, which is no"),
        ("    calendars: {de: {country: DE}}", "has the years None: give the first and the last"),
        ("    calendars: {de: {country: DE, years: [2027, 2026]}}", "has the years [2027, 2026]"),
        ("    calendars: {de: {country: DE, years: [2026, 2027, 2028]}}", "has the years [2026, "),
        ("    calendars: {de: {country: DE, years: true}}", "has the years True"),
        ("    calendars: {de: {country: DE, years: 2026, days: 2026-12-24}}", "has the days '20"),
        ("    calendars: {de: {country: XX, years: 2026}}", "t.calendars.de: nobody knows XX"),
        ("    schedules: [a]", "a.yaml:5: t.schedules: this has to be a mapping"),
        ("    policy: {http_targets: [{urll: x}]}",
         "http_targets[0].urll: no such field. Did you mean url?"),
        ("    schedules: {a: {in: !!python/name:os.system x}}", "could not determine a"),
        ("    schedules: {", "a.yaml:5: no YAML: "),
        ("    schedules: {a: " + "[" * 3000, "a.yaml:5: no YAML: lists or mappings stand too deep"),
        ("    schedules: {a: {in: 1s, payload_json: " + "[" * 400 + "]" * 400 + "}}",
         "a.yaml:5: "),
        ("    schedules: {a: {in: 1s, payload_json: {1: x}}}",
         "t/a.payload_json: this is no JSON: Dict key must be str; put texts and names in quotes"),
        ("    schedules: {a: {in: 1s, payload_json: {x: .nan}}}", "payload_json: this is no JSON"),
        ("    schedules: {a: {in: 1s, payload_json: 99999999999999999999}}",
         "t/a.payload_json: this is no JSON: Integer exceeds 64-bit range"),
        ("    schedules: {a: {every: 1:30}}",
         "t/a.every: 1:30, which YAML takes for 90: put a text in quotes"),
        ("    schedules: {a: {at: 2060-01-01T09:00:00}}",
         "2060-01-01T09:00:00 has no time zone: give an offset, such as 2060-01-01T09:00:00Z"),
        ("    schedules: {a: {<<: 5, in: 1s}}", "a.yaml:5: t/a: expected a mapping"),
        ("    schedules: {? [a] : {in: 1s}}", "a.yaml:5: t.schedules: a list or a mapping is no"),
        ("    calendars: {de: {days: [2026-12-24, 2026-13-25]}}",
         "a.yaml:5: t.calendars.de.days: month must be in 1..12"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_told_with_its_place(body: str, told: str) -> None:
    with pytest.raises(BadDeclaration) as wrong:
        of(body)
    assert told in str(wrong.value)


def test_what_every_worker_would_refuse_is_told_at_its_line() -> None:
    found = of("    schedules:\n      a:\n        every: 1m\n        max_fires: 0\n")
    complaints = Complaints()
    found.schedules["t", "a"].check(NOW_MS, complaints)
    assert len(complaints.lines) == 1
    assert complaints.lines[0].startswith("a.yaml:8: t/a.max_fires: ")


def test_files_are_one_set_and_an_object_stands_once() -> None:
    one = HEAD + "    schedules: {a: {in: 1s}}\n"
    both = declaration([("a.yaml", one), ("b.yaml", one.replace("a:", "b:") + "---\n" + HEAD)])
    assert both.schedules.keys() == {("t", "a"), ("t", "b")}
    with pytest.raises(BadDeclaration, match=r"b.yaml:5: t/a: is declared in a.yaml:5 already"):
        declaration([("a.yaml", one), ("b.yaml", one)])
    with pytest.raises(BadDeclaration, match="set: is 'r', and was 's' before"):
        declaration([("a.yaml", one), ("b.yaml", "set: r\nkept_in: t\n")])
    with pytest.raises(BadDeclaration, match="kept_in: is missing"):
        declaration([("a.yaml", "set: r\n")])
    with pytest.raises(BadDeclaration, match="no document declares anything"):
        declaration([("a.yaml", "# nothing\n")])


def test_a_list_of_targets_takes_addresses_and_fields() -> None:
    found = schedule("{in: 1s, http_targets: ['https://a.example', {url: 'https://b.example'}]}")
    urls = [each["url"] for each in found.schedules["t", "a"].request["http_targets"]]
    assert urls == ["https://a.example", "https://b.example"]


def test_a_calendar_takes_the_days_of_a_country_or_a_file_and_its_own_beside_them() -> None:
    found = of("    calendars: {de: {country: DE-BY, years: [2026, 2030], days: [2026-12-24]}}\n")
    calendar = found.calendars["t", "de"]
    assert calendar.days == ["2026-05-01", "2026-12-24", "2030-05-01"]
    assert (calendar.weekend, calendar.source) == ([], "country DE-BY of a.yaml")
    named = of("    calendars: {x: {ics: b.ics, years: 2026, source: ours, weekend: [SUN]}}\n")
    calendar = named.calendars["t", "x"]
    assert (calendar.days, calendar.weekend) == (["2026-05-01"], ["SUN"])
    assert calendar.source == "ours"


def test_another_version_of_a_library_that_says_the_same_days_is_no_change() -> None:
    (imported_one,) = of("    calendars: {de: {country: DE, years: 2026}}").calendars.values()
    older = {"days": ["2026-05-01"], "weekend": [], "source": "country DE of another release"}
    assert list(imported_one.differing(older)) == []
    (days, source) = imported_one.differing({**older, "days": ["2026-05-02"]})
    assert days == ("days", ["2026-05-02"], ["2026-05-01"])
    assert source[0] == "source"
    (named,) = of("    calendars: {de: {country: DE, years: 2026, source: x}}").calendars.values()
    assert [name for name, _, _ in named.differing(older)] == ["source"]
    assert [name for name, _, _ in imported_one.differing({})] == ["days", "source"]
